package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// cors lets browser apps of other origins call us. The keys come in headers,
// never in cookies, so credentials in the browser's sense aren't allowed.
type cors struct {
	any     bool
	origins []string
}

// newCORS is nil where no origin is allowed.
func newCORS(origins []string) *cors {
	if len(origins) == 0 {
		return nil
	}
	return &cors{any: slices.Contains(origins, "*"), origins: origins}
}

// CheckOrigin refuses what no browser sends as an origin.
func CheckOrigin(origin string) error {
	if origin == "*" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.Contains(u.Host, "*") || origin != strings.ToLower(u.Scheme+"://"+u.Host) {
		return fmt.Errorf("cors: %q is no origin, such as https://app.example or http://localhost:3000, in lower case and without a path", origin)
	}
	return nil
}

const (
	corsMethods = "GET, POST, PUT, PATCH, DELETE"
	corsExposed = "X-Request-Id, X-Ratelimit-Limit-Requests, X-Ratelimit-Remaining-Requests, " +
		"X-Ratelimit-Reset-Requests, Retry-After, Retry-After-Ms, X-Should-Retry, X-Backstory-Saved, Server-Timing"
	corsMaxAge = "7200" // seconds; the most that Chrome takes
)

// isPreflight reports whether a browser asks what it may send. It sends no keys.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers it; WriteHeader adds whether the origin is allowed.
func preflight(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Add("Vary", "Access-Control-Request-Headers")
	header.Set("Access-Control-Allow-Methods", corsMethods)
	// SDKs send headers of their own: whatever is asked for may be sent.
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		header.Set("Access-Control-Allow-Headers", asked)
	}
	header.Set("Access-Control-Max-Age", corsMaxAge)
	w.WriteHeader(http.StatusNoContent)
}

// set writes what a browser has to be told with every reply, errors included.
// What the router says of itself doesn't count here.
func (c *cors) set(header http.Header, origin string) {
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers"} {
		header.Del(name)
	}
	switch {
	case c.any:
		header.Set("Access-Control-Allow-Origin", "*")
	default:
		header.Add("Vary", "Origin")
		if !slices.Contains(c.origins, origin) {
			return
		}
		header.Set("Access-Control-Allow-Origin", origin)
	}
	header.Set("Access-Control-Expose-Headers", corsExposed)
}
