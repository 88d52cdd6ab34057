package redis

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestURLsAreRead(t *testing.T) {
	for text, want := range map[string]Target{
		"redis://localhost":                 {Addrs: []string{"localhost:6379"}},
		"redis://10.0.0.1:7000/3":           {Addrs: []string{"10.0.0.1:7000"}, Database: 3},
		"REDIS://[::1]:7000/":               {Addrs: []string{"[::1]:7000"}},
		"redis://[::1]":                     {Addrs: []string{"[::1]:6379"}},
		"redis://:secret@h":                 {Addrs: []string{"h:6379"}, Password: "secret"},
		"redis://user:p%40ss%2Fw%3Aord@h:1": {Addrs: []string{"h:1"}, Username: "user", Password: "p@ss/w:ord"},
		"redis+sentinel://a,b:7,c:8/main":   {Addrs: []string{"a:26379", "b:7", "c:8"}, Master: "main"},
		"redis+sentinel://u:p@a:1/main/2":   {Addrs: []string{"a:1"}, Master: "main", Database: 2, Username: "u", Password: "p"},
		"redis+cluster://a:1,b,[::2]:3":     {Addrs: []string{"a:1", "b:6379", "[::2]:3"}, Cluster: true},
		"redis+sentinel://a/m?sentinel_user=s&sentinel_password=%26": {
			Addrs: []string{"a:26379"}, Master: "m", SentinelUsername: "s", SentinelPassword: "&",
		},
	} {
		if got, err := ParseURL(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestURLsWithTLS(t *testing.T) {
	cert, key := certificates(t)
	for _, scheme := range []string{"rediss", "rediss+cluster", "rediss+sentinel"} {
		got, err := ParseURL(scheme + "://h/m?server_name=other&ca=" + cert + "&cert=" + cert + "&key=" + key)
		if scheme == "rediss" || scheme == "rediss+cluster" { // whose path is no name
			got, err = ParseURL(scheme + "://h?server_name=other&ca=" + cert + "&cert=" + cert + "&key=" + key)
		}
		if err != nil || got.TLS == nil || got.TLS.ServerName != "other" || got.TLS.RootCAs == nil || len(got.TLS.Certificates) != 1 {
			t.Errorf("%s: got %+v, %v", scheme, got, err)
		}
	}
}

func TestBadURLsAreRefused(t *testing.T) {
	folder := t.TempDir()
	empty := filepath.Join(folder, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                      "no scheme",
		"localhost:6379":                        "no scheme",
		"http://user:hunter2@h":                 `its scheme is "http"`,
		"redis:///":                             "no host",
		"redis://user:hunter2@":                 "no host",
		"redis://h:port":                        "port",
		"redis://h:0":                           "port",
		"redis://h:65536":                       "port",
		"redis://a,b":                           "several hosts",
		"redis://h/db":                          `database is "db"`,
		"redis://h/-1":                          "database",
		"redis://h/1/2":                         "too much in its path",
		"redis+cluster://h/1":                   "too much in its path",
		"redis+sentinel://h":                    "doesn't name the primary",
		"redis+sentinel://h/":                   "doesn't name the primary",
		"redis+sentinel://h/main/x":             "database",
		"redis+sentinel://h/main/1/2":           "too much in its path",
		"redis://h?timeout=5":                   `parameter "timeout"`,
		"redis://h?ca=a":                        "without TLS",
		"rediss://h?server_name=a&server_name=": "twice",
		"rediss://h?ca=/nowhere":                "ca: open /nowhere",
		"rediss://h?ca=" + empty:                "no certificate",
		"rediss://h?cert=" + empty:              "cert and key",
		"redis://user:hunter2#@h":               "",
		"redis://user:hun%zzter2@h":             "percent-encode",
		"redis://us er:hunter2@h":               "percent-encode",
	} {
		_, err := ParseURL(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v; want it to say %q", text, err, want)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("redis://user:hunter2@h:1/2?x=y")
	f.Add("rediss+sentinel://a,b/m")
	f.Fuzz(func(t *testing.T, text string) {
		if target, err := ParseURL(text); err == nil && len(target.Addrs) == 0 {
			t.Errorf("%q has no address", text)
		}
	})
}

func TestNamesAreEscapedApart(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"", "%", "%25", "a", "A", "a ", "a:b", "a%3ab", "{a}", "a}", "\x00", "\xff", "ÿ", "é", "a.b-c_d"} {
		escaped := escape(name)
		if other, ok := seen[escaped]; ok {
			t.Errorf("%q and %q are both %q", name, other, escaped)
		}
		seen[escaped] = name
		if unescape(escaped) != name || strings.ContainsAny(escaped, "{}: |,") || escaped == "" {
			t.Errorf("%q became %q, and %q", name, escaped, unescape(escaped))
		}
	}
}
