package gateway_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway"
)

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

func zstded(s string, o ...zstd.EOption) string {
	var b bytes.Buffer
	z, _ := zstd.NewWriter(&b, o...)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

func TestACompressedRequestIsRead(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	plain := chatBody("hi "+strings.Repeat("again ", 10_000), "")
	for name, c := range map[string]struct{ coding, body string }{
		"gzip":             {"gzip", gzipped(plain)},
		"in capitals":      {"GZIP", gzipped(plain)},
		"by its old name":  {"x-gzip", gzipped(plain)},
		"zstd":             {"zstd", zstded(plain)},
		"not at all":       {"identity", plain},
		"in two gzip runs": {"gzip", gzipped(plain[:100]) + gzipped(plain[100:])},
	} {
		r := s.post(acme, "/chat/completions", c.body, "Content-Encoding", c.coding)
		if r.status != http.StatusOK {
			t.Errorf("%s: status %d: %s", name, r.status, r.body)
			continue
		}
		got := upstream.last(t)
		if got.body != plain || got.header.Get("Content-Length") != strconv.Itoa(len(plain)) {
			t.Errorf("%s: the router got %d bytes, and was told %s of %d", name, len(got.body), got.header.Get("Content-Length"), len(plain))
		}
		if coding := got.header.Get("Content-Encoding"); c.coding != "identity" && coding != "" {
			t.Errorf("%s: the router was told %q", name, coding)
		}
	}
	s.ok(s.upload(acme, "tower.md", "The tower is 93 metres tall."))
	found := s.post(acme, "/files/search", gzipped(`{"query":"tower"}`), "Content-Encoding", "gzip")
	if s.ok(found).get("data.#").Int() != 1 {
		t.Errorf("search: %s", found.body)
	}
}

// It weighs what the process allocates, and so doesn't run beside others.
func TestACompressedRequestIsBounded(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) { o.MaxBody = 1 << 20 }})
	// 256 MiB of spaces in 256 KB.
	bomb := strings.Repeat(gzipped(strings.Repeat(" ", 16<<20)), 16)
	for name, c := range map[string]struct {
		coding, body string
		status       int
	}{
		"a bomb of gzip":            {"gzip", bomb, http.StatusRequestEntityTooLarge},
		"a bomb of zstd":            {"zstd", zstded(strings.Repeat(" ", 16<<20)), http.StatusRequestEntityTooLarge},
		"a window beyond all HTTP":  {"zstd", zstded(strings.Repeat("0123456789abcdef", 1<<14), zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false)), http.StatusBadRequest},
		"torn":                      {"gzip", gzipped(chatBody("hi", ""))[:20], http.StatusBadRequest},
		"no gzip":                   {"gzip", chatBody("hi", ""), http.StatusBadRequest},
		"no zstd":                   {"zstd", chatBody("hi", ""), http.StatusBadRequest},
		"nothing":                   {"gzip", "", http.StatusBadRequest},
		"a coding that we don't do": {"br", chatBody("hi", ""), http.StatusUnsupportedMediaType},
		"two codings":               {"gzip, gzip", gzipped(gzipped(chatBody("hi", ""))), http.StatusUnsupportedMediaType},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := s.post(acme, "/chat/completions", c.body, "Content-Encoding", c.coding)
		runtime.ReadMemStats(&after)
		if r.status != c.status || r.get("error.type").Str != "invalid_request_error" || r.get("error.message").Str == "" {
			t.Errorf("%s: status %d: %s", name, r.status, r.body)
		}
		if c.status == http.StatusUnsupportedMediaType && r.header.Get("Accept-Encoding") != "gzip, zstd" {
			t.Errorf("%s: the reply accepts %q", name, r.header.Get("Accept-Encoding"))
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 32 {
			t.Errorf("%s took %d MiB", name, took)
		}
	}
	if n := upstream.count(); n != 0 {
		t.Errorf("the router got %d requests", n)
	}
}

// It weighs what the process allocates, and so doesn't run beside others.
func TestAPackedBodyUnpacksToABoundedRatio(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	noise := make([]byte, 200_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	bomb := chatBody(strings.Repeat("A", 20_000_000), "")
	for name, c := range map[string]struct {
		coding, body string
		chunked      bool
		status       int
	}{
		"a bomb of gzip":                {"gzip", gzipped(bomb), false, http.StatusRequestEntityTooLarge},
		"a bomb of zstd":                {"zstd", zstded(bomb), false, http.StatusRequestEntityTooLarge},
		"a bomb of unknown length":      {"gzip", gzipped(bomb), true, http.StatusRequestEntityTooLarge},
		"a little that packs well":      {"gzip", gzipped(chatBody(strings.Repeat("A", 1_000_000), "")), true, http.StatusOK},
		"a lot that packs as text does": {"gzip", gzipped(chatBody(strings.Repeat(hex.EncodeToString(noise), 5), "")), true, http.StatusOK},
		"the best ahead":                {"gzip", gzipped(chatBody(strings.Repeat("A", 1_500_000)+hex.EncodeToString(noise), "")), false, http.StatusOK},
	} {
		var body io.Reader = strings.NewReader(c.body)
		if c.chunked {
			body = io.MultiReader(body)
		}
		r := s.request("POST", "/chat/completions", acme, body, "Content-Encoding", c.coding)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := s.do(r)
		runtime.ReadMemStats(&after)
		if got.status != c.status || c.status != http.StatusOK && !strings.Contains(got.get("error.message").Str, "12 times") {
			t.Errorf("%s: status %d: %.300s", name, got.status, got.body)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; c.status != http.StatusOK && took > 16 {
			t.Errorf("%s took %d MiB", name, took)
		}
	}
	if n := upstream.count(); n != 3 {
		t.Errorf("the router got %d requests", n)
	}
}

func TestOddBodiesArriveAsTheyAreOrAreRefused(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	for _, c := range []struct {
		name, body, param string
		status            int
	}{
		{"a lone surrogate", `{"model":"a/b","sessionId":"odd","messages":[{"role":"user","content":"a\ud800b"}]}`, "", 200},
		{"bytes that are no text", `{"model":"a/b","sessionId":"odd","messages":[{"role":"user","content":"` + "\xff\xc3" + `"}]}`, "", 200},
		{"a zero byte, escaped", `{"model":"a/b","sessionId":"odd","messages":[{"role":"user","content":"a\u0000b"}]}`, "", 200},
		{"numbers beyond all floats", chatBody("hi", `"seed":1e9999,"n":123456789012345678901234567890`), "", 200},
		{"50 MB", chatBody(strings.Repeat("0123456789", 5_000_000), ""), "", 200},
		{"more than the limit", chatBody(strings.Repeat("0123456789", 7_000_000), ""), "", 413},
		{"a temperature beyond all", chatBody("hi", `"temperature":1e9999`), "temperature", 400},
		{"two lists of messages", chatBody("hi", `"messages":[{"role":"user","content":"ho"}]`), "messages", 400},
		{"two sessions", chatBody("hi", `"sessionId":"a","\u0073essionId":"b"`), "sessionId", 400},
		{"a million brackets", chatBody("hi", `"x":`+strings.Repeat("[", 1_000_000)+strings.Repeat("]", 1_000_000)), "", 400},
		{"a million brackets, never shut", strings.Repeat(`{"a":`, 1_000_000), "", 400},
		{"a million members", chatBody("hi", strings.Repeat(`"x":1,`, 1_000_000)+`"y":1`), "", 400},
		{"a million messages", `{"model":"a/b","messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, 1_000_000) + `{}]}`, "messages", 400},
		{"no text at all", "\x00\x01\x02", "", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			before := upstream.count()
			r := s.post(acme, "/chat/completions", c.body)
			if r.status != c.status {
				t.Fatalf("status %d: %.300s", r.status, r.body)
			}
			if c.status == 200 {
				if got := upstream.last(t).body; got != c.body && !strings.Contains(c.body, "sessionId") {
					t.Errorf("the router got %d bytes, %.300q", len(got), got)
				}
				return
			}
			if r.get("error.param").Str != c.param || r.get("error.type").Str != "invalid_request_error" {
				t.Errorf("reply %s", r.body)
			}
			if upstream.count() != before {
				t.Error("the router was asked")
			}
		})
	}
	// What was odd is remembered as it came.
	s.t = t
	s.chat(acme, "next", `"sessionId":"odd"`)
	got := upstream.last(t).body
	for _, odd := range []string{`"a\ud800b"`, "\"\xff\xc3\"", `"a\u0000b"`} {
		if !strings.Contains(got, odd) {
			t.Errorf("%q is not in %q", odd, got)
		}
	}
	if list := s.ok(s.get(acme, "/sessions/odd/messages")); !utf8.ValidString(list.body) || list.get("data.#").Int() < 7 {
		t.Errorf("the list of messages is %q", list.body)
	}
	if gjson.Get(got, "messages.#").Int() != 7 {
		t.Errorf("the router got %q", got)
	}
}
