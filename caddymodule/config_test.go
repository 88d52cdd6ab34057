package caddymodule_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"
)

func TestTheServiceKeyGoesNowhere(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.chat(acme, "hi", "")
	s.chat(acme, "hi", `"sessionId":"s"`)
	s.post(acme, "/chat/completions", chatBody("hi", ""), "Authorization", "Bearer "+acme)
	s.post("wrong", "/chat/completions", chatBody("hi", ""))
	for _, r := range upstream.chats {
		if got := r.header.Get("Authorization"); got != "Bearer "+router {
			t.Errorf("Authorization is %q", got)
		}
		for name, values := range r.header {
			if strings.EqualFold(name, "serviceKey") || strings.Contains(strings.Join(values, ""), acme) {
				t.Errorf("the router was sent %s: %v", name, values)
			}
		}
	}
	log := s.logged()
	for _, secret := range []string{acme, router} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if !strings.Contains(log, "REDACTED") {
		t.Error("the log holds no request headers: nothing was tested")
	}
}

func TestTheFirstStartMakesAKeyAndShowsItOnce(t *testing.T) {
	upstream := newFake(t)
	store := "sqlite " + filepath.Join(t.TempDir(), "b.db")
	// The variable isn't set, and no terminal is there.
	o := options{upstream: upstream.URL, store: store, keys: "key {env.BACKSTORY_TEST_UNSET} acme pro"}
	s := start(t, o)

	files, _ := filepath.Glob(filepath.Join(caddy.AppDataDir(), "backstory", "service-key-*"))
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	file := files[0]
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	key := strings.TrimSpace(string(content))
	s.chat(key, "hi", "")
	log := s.logged()
	if strings.Contains(log, key) {
		t.Error("the key stands in the log")
	}
	if !strings.Contains(log, file) {
		t.Error("the log doesn't say where the key is")
	}
	// A typo is no key.
	typo := strings.Map(func(r rune) rune {
		if r == 'a' {
			return 'b'
		}
		return 'a'
	}, key[len(key)-1:])
	if r := s.post(key[:len(key)-1]+typo, "/chat/completions", chatBody("hi", "")); r.status != http.StatusUnauthorized {
		t.Errorf("status %d for a mistyped key", r.status)
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.load(o)
	s.chat(key, "still good", "")
	if _, err := os.Stat(file); err == nil {
		t.Error("the second start made another key")
	}
}

func TestWrongConfigurationsAreRefused(t *testing.T) {
	t.Setenv("BACKSTORY_TEST_EMPTY", "")
	for name, c := range map[string]struct{ app, message string }{
		"an empty key":                 {`key "" acme pro`, "key is empty"},
		"half a key":                   {`key sk-{env.BACKSTORY_TEST_UNSET} acme pro`, "stands for nothing"},
		"the same key twice":           {"key k acme pro\nkey k beta free", "given twice"},
		"a bad tenant of an unset key": {`key {env.BACKSTORY_TEST_UNSET} Acme! pro`, "tenant"},
		"a block of an embedder":       {"embedder hashing {\nx\n}", "unrecognized"},
		"a bad way to write":           {"store sqlite x {\nsynchronous sometimes\n}", "full or normal"},
		"a bad URL":                    {`store redis http://x`, "scheme"},
		"an unknown option of redis":   {"store redis redis://x {\nfrob 1\n}", "frob"},
		"an empty variable":            {`key {env.BACKSTORY_TEST_EMPTY} acme pro`, "key is empty: give the variable BACKSTORY_TEST_EMPTY a key"},
		"a bad tenant":                 {`key k Acme! pro`, "tenant"},
		"an unknown plan":              {`key k acme gold`, `no plan "gold"`},
		"an unknown option":            {`frobnicate`, `unrecognized option "frobnicate"`},
		"a repeated option":            {"store sqlite a\nstore sqlite b", "store is given twice"},
		"an unknown store":             {`store floppy`, "backstory.stores.floppy"},
		"an unknown embedder":          {`embedder brain`, "backstory.embedders.brain"},
		"no dimensions":                {`embedder router m`, "wrong argument count"},
		"a plan of nothing":            {`plan free 0`, "at least 1"},
		"a size of words":              {`max_body big`, "expected a size"},
		"an empty router key":          {`router_key ""`, "router key is empty"},
		"an empty router key variable": {`router_key {env.BACKSTORY_TEST_EMPTY}`, "router_key is empty"},
		"a router key in two words":    {`router_key "a b"`, "no header takes"},
		"a service key for the router": {"key k acme pro\nrouter_key k", "is a service key"},
		"no source of sessions":        {`session_from`, "wrong argument count"},
		"a bad source of sessions":     {`session_from header:X-Thread "header:X Y"`, "header:<Name>"},
	} {
		t.Run(name, func(t *testing.T) {
			err := validate("{\nadmin off\nbackstory {\n" + c.app + "\n}\n}\nhttp://127.0.0.1:0 {\nbackstory\n}\n")
			if err == nil || !strings.Contains(err.Error(), c.message) {
				t.Errorf("got %v, want something about %q", err, c.message)
			}
		})
	}
}

func TestEveryOptionIsAccepted(t *testing.T) {
	err := validate(`{
		admin off
		backstory {
			store sqlite x.db {
				synchronous normal
			}
			embedder hashing 256
			key k acme gold
			plan gold 5
			plan free 20
			context {
				max_added_tokens 1000
				max_file_tokens 500
				reserve 100
				default_length 4096
				model a/* 1000
				model b/c 2000
			}
			max_body 1MB
			max_file 2MB
			max_bodies 64MB
			bare_models
			router_key {env.BACKSTORY_TEST_UNSET}
			session_from body:metadata.thread_id header:X-Thread
			cors https://app.example http://localhost:3000
		}
	}
	http://127.0.0.1:0 {
		backstory
	}`)
	if err != nil {
		t.Error(err)
	}
	for _, store := range []string{
		"sqlite x {\nsynchronous full\n}",
		"redis rediss://u:p@h:1/2 {\nprefix p:\ndial_timeout 1s\ntimeout 2s\nsearch_timeout 1s\npool_size 3\nwait_replicas 1\nindex flat\nfiles off\n}",
		"redis redis+sentinel://a:1,b:2/primary",
	} {
		if err := validate("{\nadmin off\nbackstory {\nstore " + store + "\nembedder router m 3\n}\n}\nhttp://127.0.0.1:0 {\nbackstory\n}\n"); err != nil {
			t.Errorf("%s: %v", store, err)
		}
	}
}

func TestKeysOfTheConfigurationNeedNoStore(t *testing.T) {
	t.Setenv("BACKSTORY_TEST_KEY", "from-the-environment")
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, keys: "key {env.BACKSTORY_TEST_KEY} acme pro"})
	r := s.chat("from-the-environment", "hi", "")
	if got := r.header.Get("x-ratelimit-limit-requests"); got != "100" {
		t.Errorf("limit %s", got)
	}
	if gjson.Get(upstream.last(t).body, "model").Str != "demo/echo" {
		t.Error("the request did not arrive")
	}
}
