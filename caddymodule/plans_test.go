package caddymodule_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// tokens is what the caller has used, as GET /usage tells.
func (s *site) tokens(key string) int64 {
	s.t.Helper()
	return s.ok(s.get(key, "/usage")).get("tokens.used").Int()
}

func TestAChangeOfPlansAppliesToKeysAtReload(t *testing.T) {
	upstream := newFake(t)
	o := options{upstream: upstream.URL, store: "sqlite " + filepath.Join(t.TempDir(), "b.db"), keys: "key " + acme + " acme mine"}
	o.app = "plan mine 10"
	s := start(t, o)
	s.chat(acme, "hi", "")
	o.app = "plan mine 20 {\ntokens_per_month 3\n}"
	s.load(o)
	r := s.chat(acme, "hi", "")
	if r.header.Get("x-ratelimit-limit-requests") != "20" || r.header.Get("x-ratelimit-remaining-requests") != "18" {
		t.Errorf("got %v", r.header)
	}
	s.chat(acme, "hi", "")
	if r := s.post(acme, "/chat/completions", chatBody("hi", "")); r.get("error.code").Str != "insufficient_quota" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	o.app = "plan mine 20 {\ntokens_per_month 1M\n}"
	s.load(o)
	s.chat(acme, "hi", "")
	if n := s.tokens(acme); n != 6 {
		t.Errorf("%d tokens used", n)
	}
}

func TestBrokenPlansAreRefused(t *testing.T) {
	for plan, want := range map[string]string{
		"tokens_per_month":         "wrong argument count",
		"tokens_per_month 0":       `not "0"`,
		"tokens_per_month 1.5":     `not "1.5"`,
		"tokens_per_month 20Q":     `not "20Q"`,
		"tokens_per_month 1e300":   "expected a number",
		"tokens_per_month 1k 2k":   "wrong argument count",
		"files -1":                 "at least 1",
		"file_size much":           "such as 25MB",
		"sessions_ttl soon":        "expected a duration",
		"models":                   "expected: models",
		"models [":                 "model pattern",
		"storage 1MB\nstorage 2MB": "storage is given twice",
		"tokens_per_moth 5":        `unrecognized plan option "tokens_per_moth"`,
	} {
		err := validate("{\nbackstory {\nplan mine 5 {\n" + plan + "\n}\n}\n}\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", plan, err, want)
		}
	}
	ok := "{\nbackstory {\nplan mine 5 {\ntokens_per_month 1.5M\nfiles 10\nfile_size 5MB\nstorage 1GiB\nsessions_ttl 90d\nmodels openai/* demo/echo\n}\n}\n}\n"
	if err := validate(ok); err != nil {
		t.Error(err)
	}
}
