package caddymodule_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// script is what testdata/replay has in a file: a site, and what is asked of it. The
// format is described in testdata/replay/README.md.
type script struct {
	path   string
	stores []string
	models string // what the router answers to GET /models; empty: 404
	site   options
	steps  []*step
}

// step is one request with what the router answers, or a command.
type step struct {
	scenario string // its heading
	from     string // the script
	line     int
	command  []string // other than a request: its words

	method, path string
	header       http.Header
	body         []byte
	upload       string // the name of the file that body holds
	options      map[string]string
	answer       *answer // nil: the default
}

// answer is what the router says to a request.
type answer struct {
	kind   string // "say", "events", "chunks", "hang", or a status
	text   string // of "say"
	header http.Header
	lines  []string
}

// scriptReader takes in a script line by line.
type scriptReader struct {
	t     *testing.T
	s     *script
	title string
	cur   *step
	said  []string // lines of the body being read
}

// readScript reads a script, which may be in several files.
func readScript(t *testing.T, paths ...string) *script {
	t.Helper()
	p := &scriptReader{t: t, s: &script{stores: []string{"sqlite", "redis"}}}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p.s.path = path
		for i, line := range strings.Split(string(b), "\n") {
			if err := p.take(line, i+1); err != nil {
				t.Fatalf("%s:%d: %v", path, i+1, err)
			}
		}
		if err := p.flush(); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return p.s
}

func (p *scriptReader) take(line string, number int) error {
	mark, rest, _ := strings.Cut(line, " ")
	switch {
	case p.title == "" && !strings.HasPrefix(line, "=== "):
		return p.setting(line)
	case mark == "#":
		return nil
	case mark == "===":
		if err := p.flush(); err != nil {
			return err
		}
		p.title, p.cur = rest, nil
		return nil
	case mark == "!":
		if err := p.flush(); err != nil {
			return err
		}
		p.cur = nil
		p.s.steps = append(p.s.steps, &step{scenario: p.title, from: p.s.path, line: number, command: strings.Fields(rest)})
		return nil
	case mark == ">":
		return p.request(rest, number)
	case mark == ">>":
		name, value, _ := strings.Cut(rest, " ")
		p.cur.options[name] = value
		return nil
	case mark == "<":
		return p.reply(rest)
	}
	p.said = append(p.said, strings.TrimPrefix(line, `\`))
	return nil
}

// setting reads a line ahead of the first scenario.
func (p *scriptReader) setting(line string) error {
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	name, value, _ := strings.Cut(line, ": ")
	o := &p.s.site
	switch name {
	case "stores":
		p.s.stores = strings.Fields(value)
	case "models":
		p.s.models = value
	case "app":
		o.app += value + "\n"
	case "site":
		o.site += value + "\n"
	case "behind":
		o.behind += value + "\n"
	case "keys":
		o.keys += value + "\n"
	default:
		return fmt.Errorf("unknown setting %q", name)
	}
	return nil
}

var fieldLine = regexp.MustCompile(`^([A-Za-z-]+):(?: (.*))?$`)

// request begins a request, or adds a header to it.
func (p *scriptReader) request(rest string, number int) error {
	if m := fieldLine.FindStringSubmatch(rest); m != nil && p.cur != nil {
		p.cur.header.Add(m[1], p.expand(m[2]))
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	words := strings.SplitN(rest, " ", 3)
	p.cur = &step{scenario: p.title, from: p.s.path, line: number, header: http.Header{}, options: map[string]string{}}
	p.s.steps = append(p.s.steps, p.cur)
	p.cur.method, p.cur.path = words[0], "/files"
	switch words[0] {
	case "CHAT", "STREAM", "PREVIEW":
		if len(words) < 3 {
			return fmt.Errorf("expected: %s <session|-> <text>", words[0])
		}
		p.cur.options["talk"] = words[0] + " " + p.expand(words[1]+" "+words[2])
		p.cur.method, p.cur.path = "POST", "/chat/completions"
		if words[0] == "PREVIEW" {
			p.cur.path += "/preview"
		}
	case "UPLOAD":
		p.cur.method, p.cur.upload = "POST", p.expand(strings.TrimPrefix(rest, "UPLOAD "))
	default:
		method, path, ok := strings.Cut(rest, " ")
		if !ok {
			return fmt.Errorf("expected: <method> <path>, not %q", rest)
		}
		p.cur.method, p.cur.path = method, p.expand(path)
	}
	return nil
}

// reply begins the router's answer, or adds a header to it.
func (p *scriptReader) reply(rest string) error {
	if m := fieldLine.FindStringSubmatch(rest); m != nil && p.cur.answer != nil {
		p.cur.answer.header.Add(m[1], p.expand(m[2]))
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	kind, text, _ := strings.Cut(rest, " ")
	p.cur.answer = &answer{kind: kind, text: p.expand(text), header: http.Header{}}
	return nil
}

// flush gives the lines that were read to the request or to its answer. Blank
// lines at the end separate.
func (p *scriptReader) flush() error {
	for n := len(p.said); n > 0 && p.said[n-1] == ""; n-- {
		p.said = p.said[:n-1]
	}
	said := p.said
	p.said = nil
	if p.cur == nil {
		if len(said) > 0 {
			return fmt.Errorf("%q belongs to nothing", said[0])
		}
		return nil
	}
	for i := range said {
		said[i] = p.expand(said[i])
	}
	if a := p.cur.answer; a != nil {
		if a.lines == nil {
			a.lines = said
		}
		return nil
	}
	return p.cur.setBody(said)
}

func (s *step) setBody(lines []string) error {
	if s.body != nil {
		return nil
	}
	s.body = []byte(strings.Join(lines, "\n"))
	if _, quoted := s.options["quoted"]; quoted {
		s.body = nil
		for _, line := range lines {
			text, err := strconv.Unquote(line)
			if err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			s.body = append(s.body, text...)
		}
	}
	talk, ok := s.options["talk"]
	if !ok {
		return nil
	}
	words := strings.SplitN(talk, " ", 3)
	var extra []string
	if words[1] != "-" {
		extra = append(extra, `"sessionId":`+strconv.Quote(words[1]))
	}
	if words[0] == "STREAM" {
		extra = append(extra, `"stream":true`)
	}
	if len(s.body) > 0 {
		extra = append(extra, string(bytes.TrimSpace(s.body)))
	}
	s.body = []byte(chatBody(words[2], strings.Join(extra, ",")))
	return nil
}

var macro = regexp.MustCompile(`\{\{(repeat|include) ([^}]*)\}\}`)

// expand replaces {{repeat <n> <text>}} and {{include <file>}}.
func (p *scriptReader) expand(text string) string {
	return macro.ReplaceAllStringFunc(text, func(m string) string {
		parts := macro.FindStringSubmatch(m)
		if parts[1] == "include" {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(p.s.path), parts[2]))
			if err != nil {
				p.t.Fatal(err)
			}
			return string(b)
		}
		times, what, _ := strings.Cut(parts[2], " ")
		n, err := strconv.Atoi(times)
		if err != nil {
			p.t.Fatalf("%s: %v", m, err)
		}
		return strings.Repeat(what, n)
	})
}
