// Package version says which version of Backstory a binary contains.
package version

import "runtime/debug"

const module = "github.com/backstory-proxy/backstory"

// stamp is the version that the linker was given, for builds in which Go itself
// can't know it: from a folder without git, or with the module replaced by one.
//
//	-ldflags '-X github.com/backstory-proxy/backstory/internal/version.stamp=v1.2.3'
var stamp string

// Version returns the version of Backstory in this binary, such as v1.2.3: what
// the linker was given, or else what Go recorded of the module or the git
// checkout. It is "(devel)" where there is neither.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return of(stamp, info)
}

func of(stamp string, info *debug.BuildInfo) string {
	const unknown = "(devel)" // as Go says
	if stamp != "" {
		return stamp
	}
	if info == nil {
		return unknown
	}
	m := &info.Main
	for _, dep := range info.Deps {
		if dep.Path == module {
			m = dep
		}
	}
	if m.Path != module {
		return unknown
	}
	if m.Replace != nil {
		m = m.Replace
	}
	if m.Version == "" {
		return unknown
	}
	return m.Version
}
