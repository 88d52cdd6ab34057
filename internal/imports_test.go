// Package internal_test holds what is true of the module as a whole.
package internal_test

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/backstory-proxy/backstory"

// ofCaddy are the folders that may know of Caddy: the layer that builds the
// service into it, and the programs.
var ofCaddy = []string{"caddymodule", "cmd"}

// Backstory is a service that happens to run in Caddy. What it does can be used
// and tested without, and so nothing but the layer in between knows Caddy: no
// package imports it, nor caddymodule, which would bring it along. Their tests
// don't either.
func TestOnlyTheCaddyLayerKnowsCaddy(t *testing.T) {
	files, of := 0, 0
	walkGo(t, "..", func(file string, imports []string) {
		files++
		knows := slices.IndexFunc(imports, func(name string) bool {
			return strings.HasPrefix(name, "github.com/caddyserver/") || below(name, module+"/caddymodule")
		})
		switch {
		case knows < 0:
		case slices.ContainsFunc(ofCaddy, func(folder string) bool { return below(file, folder) }):
			of++
		default:
			t.Errorf("%s imports %s", file, imports[knows])
		}
	})
	if files < 200 || of < 10 {
		t.Errorf("only %d files, %d of them Caddy's, were looked at: nothing was tested", files, of)
	}
}

// below reports whether a path is a folder or something in it.
func below(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// walkGo calls visit with each Go file of the module, as its path from the root,
// and what the file imports. Modules inside the module are others.
func walkGo(t *testing.T, root string, visit func(file string, imports []string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isModule(name)) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(d.Name()) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, imported)
		}
		file, err := filepath.Rel(root, name)
		visit(filepath.ToSlash(file), imports)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return !errors.Is(err, fs.ErrNotExist)
}
