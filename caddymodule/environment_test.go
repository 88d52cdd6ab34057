package caddymodule_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// unsetenv takes variables away for the rest of the test.
func unsetenv(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(name, "") // which restores it
		os.Unsetenv(name)
	}
}

// environmentSite is the shipped Caddyfile on ports of its own.
func environmentSite(t *testing.T) (*site, string) {
	dir := t.TempDir()
	s := &site{t: t, log: filepath.Join(dir, "log")}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	t.Setenv("SERVICE_KEY", acme)
	demo := freeAddress(t)
	return s, shipped(t,
		"admin localhost:2019", "admin off\npersist_config off\nauto_https off",
		"grace_period 10s\n", "",
		"\tbackstory {\n", "\tbackstory {\nstore sqlite "+filepath.Join(dir, "b.db")+"\n",
		"import backstory_redact\n\t}\n}", "import backstory_redact\noutput file "+s.log+"\n}\n}",
		"http://:8080 {", "http://"+freeAddress(t)+" {",
		"{$ROUTER_URL:http://127.0.0.1:8081}", "{$ROUTER_URL:http://"+demo+"}",
		"http://127.0.0.1:8081 {", "http://"+demo+" {",
	)
}

// loadJSON loads what a Caddyfile was made into, in whatever environment.
func (s *site) loadJSON(config []byte, caddyfile string) error {
	_, rest, _ := strings.Cut(caddyfile, "\nhttp://")
	address, _, _ := strings.Cut(rest, " ")
	s.root, s.url = "http://"+address, "http://"+address+"/api/v1"
	return caddy.Load(config, true)
}

func TestAReloadWithoutTheRoutersAddressIsRefused(t *testing.T) {
	for _, lost := range [][]string{{"ROUTER_URL", "ROUTER_PATH"}, {"ROUTER_URL"}, {"ROUTER_PATH"}} {
		t.Run(strings.Join(lost, " and "), func(t *testing.T) {
			upstream := newFake(t)
			s, config := environmentSite(t)
			set := func() { t.Setenv("ROUTER_URL", upstream.URL); t.Setenv("ROUTER_PATH", "/api/v1") }
			set()
			if err := s.loadJSON(configOf(t, config), config); err != nil {
				t.Fatal(err)
			}
			unsetenv(t, lost...) // as in the shell of the command
			elsewhere := configOf(t, config)
			set()
			err := s.loadJSON(elsewhere, config)
			if err == nil || !strings.Contains(err.Error(), lost[0]) || strings.Contains(err.Error(), upstream.URL) {
				t.Errorf("the reload ends with %v", err)
			}
			if s.chat(acme, "hi", ""); upstream.last(t).path != "/api/v1/chat/completions" {
				t.Errorf("the router got %+v", upstream.last(t))
			}
			if strings.Contains(s.logged(), "the demo router stands in") {
				t.Error("the log tells of the demo router")
			}
		})
	}
}

func TestWithoutAnySettingTheDemoRouterAnswers(t *testing.T) {
	unsetenv(t, "ROUTER_URL", "ROUTER_PATH")
	s, config := environmentSite(t)
	if err := s.loadJSON(configOf(t, config), config); err != nil {
		t.Fatal(err)
	}
	if r := s.chat(acme, "hi", ""); !strings.Contains(r.body, "demo model") {
		t.Errorf("the answer is %s", r.body)
	}
	if !strings.Contains(s.logged(), "the demo router stands in") {
		t.Error("the log doesn't tell of the demo router")
	}
	// A reload may go from the demo router to another.
	upstream := newFake(t)
	t.Setenv("ROUTER_URL", upstream.URL)
	_, config = environmentSite(t)
	elsewhere := configOf(t, config)
	unsetenv(t, "ROUTER_URL")
	if err := s.loadJSON(elsewhere, config); err != nil {
		t.Fatal(err)
	}
	if s.chat(acme, "hi", ""); upstream.count() != 1 {
		t.Errorf("the router got %d requests", upstream.count())
	}
}
