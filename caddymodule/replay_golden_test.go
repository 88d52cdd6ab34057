package caddymodule_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// golden writes down what came of the steps. What differs from run to run has
// a placeholder in its place.
type golden struct {
	began time.Time
	files map[string]string // placeholders of file ids
	names map[string]int    // how many files there are of a name
	left  map[string]int    // requests that a key has left; -1: unknown
	vars  map[string]string // what stands in a script for what isn't known ahead
}

func newGolden() *golden {
	return &golden{time.Now(), map[string]string{}, map[string]int{}, map[string]int{}, map[string]string{}}
}

// dull are headers that say nothing, or that the body tells.
var dull = map[string]bool{
	"Content-Length": true, "Date": true, "Server": true, "User-Agent": true, "Via": true,
	"X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true, http.CanonicalHeaderKey(stepHeader): true,
}

var (
	uuid      = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	fileID    = regexp.MustCompile(`\bfile-[A-Z2-7]{26}\b`)
	expiry    = regexp.MustCompile(`"updated_at":(\d{10}),"expires_at":(\d{10})`)
	stamp     = regexp.MustCompile(`"(created_at|updated_at|resets_at)":(\d{10}(?:\.\d+)?)`)
	duration  = regexp.MustCompile(`;dur=[0-9.]+`)
	wait      = regexp.MustCompile(`try again in [0-9.ms]+s\.`)
	mark      = regexp.MustCompile(`<<<passage (\d{12}) `)
	nextMonth = regexp.MustCompile(`anew on \d{4}-\d\d-01 `)
)

// stable puts placeholders into a text.
func (g *golden) stable(text string) string {
	text = uuid.ReplaceAllString(text, "<uuid>")
	for _, m := range mark.FindAllStringSubmatch(text, -1) { // it depends on the files' ids
		text = strings.ReplaceAll(text, m[1], "<mark>")
	}
	text = wait.ReplaceAllString(text, "try again in <time>.")
	text = nextMonth.ReplaceAllString(text, "anew on <next month> ")
	text = strings.ReplaceAll(text, g.began.UTC().Format("[2 Jan 2006]"), "[<today>]")
	text = fileID.ReplaceAllStringFunc(text, func(id string) string {
		if g.files[id] == "" {
			return "<file>" // of an upload that didn't tell its id
		}
		return g.files[id]
	})
	text = expiry.ReplaceAllStringFunc(text, func(m string) string {
		parts := expiry.FindStringSubmatch(m)
		updated, _ := strconv.ParseInt(parts[1], 10, 64)
		expires, _ := strconv.ParseInt(parts[2], 10, 64)
		// The store reads its own clock, and both times are cut to seconds.
		lifetime := (time.Duration(expires-updated) * time.Second).Round(time.Minute)
		return fmt.Sprintf(`"updated_at":%d,"expires_at":<updated+%v>`, updated, lifetime)
	})
	return stamp.ReplaceAllStringFunc(text, func(m string) string {
		parts := stamp.FindStringSubmatch(m)
		if parts[1] == "resets_at" {
			return `"resets_at":<time>`
		}
		seconds, _ := strconv.ParseFloat(parts[2], 64)
		at := time.UnixMilli(int64(seconds * 1000))
		if !at.Before(g.began.Truncate(time.Second)) {
			return `"` + parts[1] + `":<now>`
		}
		return m
	})
}

// named gives the id of an upload a placeholder by the name of its file.
func (g *golden) named(name, id string) {
	if id == "" || g.files[id] != "" {
		return
	}
	g.names[name]++
	if n := g.names[name]; n > 1 {
		name = fmt.Sprintf("%s#%d", name, n)
	}
	g.files[id] = "<file:" + name + ">"
}

var variable = regexp.MustCompile(`\{\{(file:[^}]*|key)\}\}`)

// actual puts ids in place of {{file:<name>}}, and a key in place of {{key}}.
func (g *golden) actual(text string) string {
	return variable.ReplaceAllStringFunc(text, func(m string) string {
		if value, ok := g.vars[m[2:len(m)-2]]; ok {
			return value
		}
		for id, placeholder := range g.files {
			if placeholder == "<"+m[2:len(m)-2]+">" {
				return id
			}
		}
		return m
	})
}

// block writes down one request: what reached the router, and the reply.
func (g *golden) block(n int, s *step, sent []byte, got []received, said []byte, r reply, key string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- %d %s %s\n", n, s.method, s.path)
	// What may come at the same time is ordered; a chat comes last anyway.
	slices.SortStableFunc(got, func(x, y received) int {
		chat := func(r received) int { return strings.Count(r.path, "/chat/completions") }
		if c := chat(x) - chat(y); c != 0 {
			return c
		}
		return strings.Compare(x.path+x.body, y.path+y.body)
	})
	for _, in := range got {
		fmt.Fprintf(&b, "router: %s\n", g.stable(in.path))
		g.headers(&b, in.header, "")
		g.body(&b, in.body, string(sent), "as sent")
	}
	fmt.Fprintf(&b, "reply: %d\n", r.status)
	g.headers(&b, r.header, key)
	g.body(&b, r.body, string(said), "as answered")
	return b.String()
}

func (g *golden) headers(b *strings.Builder, header http.Header, key string) {
	names := make([]string, 0, len(header))
	for name := range header {
		if !dull[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range header[name] {
			switch name {
			case "X-Ratelimit-Remaining-Requests":
				value = g.remaining(key, value, header.Get("X-Ratelimit-Limit-Requests"))
			case "X-Ratelimit-Reset-Requests":
				if d, err := time.ParseDuration(value); err == nil && d > 0 && d <= time.Minute {
					continue
				}
			case "Retry-After", "Retry-After-Ms":
				value = "<time>"
			case "Server-Timing":
				value = duration.ReplaceAllString(value, "")
			}
			fmt.Fprintf(b, "  %s: %s\n", name, g.stable(value))
		}
	}
}

// remaining tells by how much the requests that are left went down, so that a
// new request in a script changes no line of the others. Small numbers tell
// more.
func (g *golden) remaining(key, value, limit string) string {
	now, _ := strconv.Atoi(value)
	most, _ := strconv.Atoi(limit)
	before, known := g.left[key]
	g.left[key] = now
	switch {
	case most < 1000:
		return value
	case !known || before < 0:
		return "<some>"
	}
	return fmt.Sprintf("<%d less>", before-now)
}

// body writes a body line by line; or that it is the same as another, which
// the script tells.
func (g *golden) body(b *strings.Builder, body, other, as string) {
	switch {
	case body == "":
	case body == other:
		fmt.Fprintf(b, "  = %s\n", as)
	case !utf8.ValidString(body) || strings.ContainsAny(body, "\r\x00"):
		fmt.Fprintf(b, "  q %s\n", g.stable(strconv.Quote(body)))
	default:
		for line := range strings.SplitSeq(body, "\n") {
			b.WriteString(strings.TrimRight("  | "+g.stable(line), " ") + "\n")
		}
	}
}
