package version

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	main := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: module, Version: version}}
	}
	built := func(m debug.Module) *debug.BuildInfo { // as xcaddy does
		m.Path = module
		return &debug.BuildInfo{Main: debug.Module{Path: "caddy", Version: "(devel)"}, Deps: []*debug.Module{
			{Path: "github.com/caddyserver/caddy/v2", Version: "v2.0.0"}, &m,
		}}
	}
	for name, c := range map[string]struct {
		stamp string
		info  *debug.BuildInfo
		want  string
	}{
		"a release":                   {"", main("v1.2.3"), "v1.2.3"},
		"a checkout without git":      {"", main("(devel)"), "(devel)"},
		"a build without modules":     {"", nil, "(devel)"},
		"a stamped build":             {"v1.2.3", main("(devel)"), "v1.2.3"},
		"a module of another program": {"", built(debug.Module{Version: "v1.2.3"}), "v1.2.3"},
		"replaced by a fork":          {"", built(debug.Module{Version: "v1.2.3", Replace: &debug.Module{Path: "fork", Version: "v1.2.4"}}), "v1.2.4"},
		"replaced by a folder":        {"", built(debug.Module{Version: "v1.2.3", Replace: &debug.Module{Path: "../backstory"}}), "(devel)"},
		"another program":             {"", &debug.BuildInfo{Main: debug.Module{Path: "caddy", Version: "v9.9.9"}}, "(devel)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := of(c.stamp, c.info); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
