package caddymodule_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// optionsOfTheCode are the words that the code compares to what it has read of a
// Caddyfile, in functions that are given a Dispenser: the cases of switches, the
// keys of maps, and what stands behind an equals sign.
func optionsOfTheCode(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && takesDispenser(f) {
				wordsOf(f, found)
			}
		}
	}
	// Guest modules and directives are options by their names.
	for _, m := range caddy.Modules() {
		for _, space := range []string{"backstory.stores.", "backstory.embedders.", "http.handlers."} {
			name, ok := strings.CutPrefix(m, space)
			if ok && m != "backstory.stores.flaky" && m != "backstory.stores.core" && (space != "http.handlers." || strings.HasPrefix(name, "backstory")) {
				found[name] = true
			}
		}
	}
	var options []string
	for o := range found {
		options = append(options, o)
	}
	slices.Sort(options)
	return options
}

func takesDispenser(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		if star, ok := p.Type.(*ast.StarExpr); ok {
			if s, ok := star.X.(*ast.SelectorExpr); ok && s.Sel.Name == "Dispenser" {
				return true
			}
		}
	}
	return false
}

func wordsOf(f *ast.FuncDecl, to map[string]bool) {
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			word, _ := strconv.Unquote(lit.Value)
			to[word] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, e := range n.List {
				add(e)
			}
		case *ast.CompositeLit:
			if _, isMap := n.Type.(*ast.MapType); isMap {
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						add(kv.Key)
					}
				}
			}
		case *ast.BinaryExpr: // option == "model"
			if n.Op == token.EQL || n.Op == token.NEQ {
				add(n.Y)
			}
		}
		return true
	})
	delete(to, "")
}

func TestEveryOptionIsDocumented(t *testing.T) {
	b, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		// A row of a table begins with the option as it is written.
		cell, ok := strings.CutPrefix(strings.ReplaceAll(line, "&nbsp;", ""), "| `")
		if !ok {
			continue
		}
		for _, word := range strings.FieldsFunc(strings.SplitN(cell, "`", 2)[0], func(r rune) bool { return strings.ContainsRune(" \\|", r) }) {
			documented[word] = true
		}
	}
	options := optionsOfTheCode(t)
	if len(options) < 25 || !slices.Contains(options, "max_added_tokens") || !slices.Contains(options, "wait_replicas") || !slices.Contains(options, "cors") {
		t.Fatalf("the code's options were not found: %q", options)
	}
	for _, o := range options {
		if !documented[o] {
			t.Errorf("docs/configuration.md doesn't tell of %q", o)
		}
	}
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, config, message string }{
		{"an option that there isn't", `{
	backstory {
		stroe sqlite
	}
}`, `unrecognized option "stroe", at Caddyfile:3`},
		{"a plan without a number", `{
	backstory {
		plan gold lots
	}
}`, `expected a number of at least 1, not "lots", at Caddyfile:3`},
		{"a key of a plan that there isn't", `{
	backstory {
		key k acme gold
	}
}
http://127.0.0.1:0 {
	backstory
}`, `loading backstory app module: provision backstory: key 1: there is no plan "gold"`},
		{"a store that there isn't", `{
	backstory {
		store postgres
	}
}`, `module not registered: backstory.stores.postgres, at Caddyfile:3`},
		{"an origin with a path", `{
	backstory {
		cors https://app.example/
	}
}
http://127.0.0.1:0 {
	backstory
}`, `cors: "https://app.example/" is no origin, such as https://app.example or http://localhost:3000, in lower case and without a path, at Caddyfile:3`},
		{"an option of Redis that can't be", `{
	backstory {
		store redis redis://h {
			search_timeout 100us
		}
	}
}`, `redis: a timeout, size or number of replicas is negative, or a timeout less than a millisecond`},
		{"files in another database of Redis", `{
	backstory {
		store redis redis://h/3
	}
}`, `redis: file search works in database 0 only; take the 3 out of the URL, or turn files off`},
		{"a plan without a name", `{
	backstory {
		plan "" 5
	}
}`, `a plan has an empty name`},
		{"options of the app in the site", `http://127.0.0.1:0 {
	backstory {
		store sqlite
	}
}`, `backstory takes no arguments and no block; its options stand in the global option backstory, at Caddyfile:3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validate(c.config)
			if err == nil || !strings.HasSuffix(err.Error(), c.message) {
				t.Fatalf("got  %v\nwant %s", err, c.message)
			}
			t.Log(err)
		})
	}
}

func TestTheShippedCaddyfileIsGood(t *testing.T) {
	if err := validate(shipped(t)); err != nil {
		t.Error(err)
	}
}
