package gateway

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
)

// sessionSource is a place in a request that may name its session: a path in
// the body, or a header.
type sessionSource struct{ path, header string }

// plainPath matches a dotted path, as in metadata.thread_id, without gjson's
// wildcards, queries and modifiers.
var plainPath = regexp.MustCompile(`^[\w$-]+(\.[\w$-]+)*$`)

// headerName matches what a header can be called (RFC 9110, section 5.1).
var headerName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// secretHeaders name who calls; what they hold is never kept as a name.
var secretHeaders = map[string]bool{
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true, upstream.HeaderServiceKey: true,
}

func parseSessionSources(texts []string) ([]sessionSource, error) {
	sources := make([]sessionSource, len(texts))
	for i, text := range texts {
		var err error
		if sources[i], err = parseSessionSource(text); err != nil {
			return nil, err
		}
	}
	return sources, nil
}

func parseSessionSource(text string) (sessionSource, error) {
	kind, name, _ := strings.Cut(text, ":")
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case kind == "body" && plainPath.MatchString(name):
		return sessionSource{path: name}, nil
	case kind == "header" && secretHeaders[canonical]:
		return sessionSource{}, fmt.Errorf("session_from: the header %s holds a secret, which can't name a session", name)
	case kind == "header" && strings.HasPrefix(canonical, upstream.HeaderPrefix):
		return sessionSource{}, fmt.Errorf("session_from: the header %s is Backstory's own", name)
	case kind == "header" && headerName.MatchString(name):
		return sessionSource{header: canonical}, nil
	}
	return sessionSource{}, fmt.Errorf("session_from: expected body:<path.to.field> or header:<Name>, not %q", text)
}

// sessionFrom finds the session of a request that names none by itself: the
// first of the operator's sources that names one. A number is a name, too;
// anything else that isn't a text is none.
func (ca *chatAPI) sessionFrom(header http.Header) func(body gjson.Result) string {
	if len(ca.sources) == 0 {
		return nil
	}
	return func(body gjson.Result) string {
		for _, s := range ca.sources {
			if s.header != "" {
				if name := header.Get(s.header); name != "" {
					return name
				}
				continue
			}
			switch v := body.Get(s.path); {
			case v.Type == gjson.String && v.Str != "":
				return strings.Clone(v.Str)
			case v.Type == gjson.Number:
				return strings.Clone(v.Raw)
			}
		}
		return ""
	}
}
