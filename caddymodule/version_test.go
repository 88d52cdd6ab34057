package caddymodule_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

func TestTheVersionCommandNamesBothVersions(t *testing.T) {
	want := regexp.MustCompile(`^Backstory \S+, Caddy`) // whose version a test binary may not know
	for _, arg := range []string{"version", "--version"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], arg)
		cmd.Env = append(os.Environ(), childCommand+"=1")
		out, err := cmd.Output()
		if err != nil || !want.Match(out) {
			t.Errorf("%s: %q, %v", arg, out, err)
		}
	}
}
