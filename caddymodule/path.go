package caddymodule

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/backstory-proxy/backstory/gateway"
)

// dotted matches the path of a session called "." or "..", which few clients
// escape.
var dotted = regexp.MustCompile(`/sessions/(\.{1,2})(?:/|$)`)

// escapedPath is the path of a request below the address that Backstory is
// mounted at, percent-encoded as the client sent it. What handle_path leaves isn't
// that: having taken the prefix off, it decodes the path and resolves the dots in
// it, so that /sessions/x%2F..%2Fy has become /sessions/y.
//
// The prefix is found as what the one path has ahead of the other, both of them
// decoded and resolved. Where there is no such prefix, a rewrite of the operator's
// has made another path of it, which stands.
func escapedPath(r *http.Request) string {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok {
		return gateway.EscapedPath(r.URL)
	}
	if original.URL.RawPath == "" && !strings.Contains(original.URL.Path, "/sessions/.") {
		// Every escape is one that the path needs, which no slash or dot does:
		// nothing is lost.
		return gateway.EscapedPath(r.URL)
	}
	sent := gateway.EscapedPath(original.URL)
	if dots := dotted.FindStringSubmatchIndex(sent); dots != nil {
		sent = sent[:dots[2]] + strings.ReplaceAll(sent[dots[2]:dots[3]], ".", "%2E") + sent[dots[3]:]
	}
	// As handle_path has it, plain dots and double slashes are resolved first.
	sent = caddyhttp.CleanPath(sent, true)
	decoded, err := url.PathUnescape(sent)
	if err != nil {
		return gateway.EscapedPath(r.URL)
	}
	// To Go, and so to Caddy, a path is all decoded if a character stands in it
	// that should have been escaped: an escaped slash is then like any other.
	merged := original.URL.EscapedPath() != original.URL.RawPath
	prefix, ok := strings.CutSuffix(resolved(decoded, merged), resolved(r.URL.Path, merged))
	if !ok {
		return gateway.EscapedPath(r.URL)
	}
	if below, ok := cutDecoded(sent, prefix); ok {
		return below
	}
	return sent
}

// resolved resolves the dots in a decoded path, and double slashes if they are to
// be merged.
func resolved(path string, merged bool) string {
	escaped := (&url.URL{Path: path}).EscapedPath() // CleanPath takes no other
	path, _ = url.PathUnescape(caddyhttp.CleanPath(escaped, merged))
	return path
}

// cutDecoded takes off an escaped path what decodes to the prefix.
func cutDecoded(escaped, prefix string) (string, bool) {
	for ; prefix != ""; prefix = prefix[1:] {
		if escaped == "" {
			return "", false
		}
		n := 1
		if escaped[0] == '%' {
			n = 3
		}
		c, err := url.PathUnescape(escaped[:min(n, len(escaped))])
		if err != nil || c[0] != prefix[0] {
			return "", false
		}
		escaped = escaped[n:]
	}
	return escaped, true
}
