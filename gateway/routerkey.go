package gateway

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/internal/keyring"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// checkRouterKey refuses an operator's router key that can't be one. The key
// itself never stands in an error.
func checkRouterKey(key string, keys *keyring.Keyring) error {
	switch {
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("router_key holds a character that no header takes")
	case key != "" && keys.Ours(key):
		return errors.New("router_key is a service key: it would be sent to the model router")
	}
	return nil
}

// authenticateOne checks a request that carries one key: the service key,
// where clients have the router's. The operator's router key takes its place.
func (gt *gate) authenticateOne(r *http.Request) (caller, error) {
	key, ok := "", false
	if values := r.Header.Values("Authorization"); len(values) == 1 {
		var scheme string
		scheme, key, ok = strings.Cut(values[0], " ")
		key = strings.TrimSpace(key)
		ok = ok && key != "" && strings.EqualFold(scheme, "Bearer")
	}
	if !ok {
		return caller{}, openai.StatusError(http.StatusUnauthorized,
			"You didn't provide a key. Send your service key in the header Authorization: Bearer …")
	}
	found, plan, err := gt.lookup(r.Context(), key)
	if errors.Is(err, keyring.ErrBadKey) {
		return caller{}, openai.StatusError(http.StatusUnauthorized,
			"Incorrect service key provided in Authorization. A key of the model router needs a service key beside it, in the header serviceKey.")
	}
	if err != nil {
		return caller{}, &unavailable{err}
	}
	r.Header.Del(upstream.HeaderServiceKey) // an empty one
	r.Header.Set("Authorization", "Bearer "+gt.routerKey)
	return caller{scope: store.Scope{Tenant: found.Tenant}, plan: plan, planName: found.Plan, onOperator: true}, nil
}

// checkOperators refuses a request that must not go out with the operator's
// key.
func checkOperators(r *http.Request) error {
	if _, pattern := operators.Handler(r); pattern != "" && plain(r.URL) {
		return nil
	}
	return openai.StatusError(http.StatusForbidden,
		"Not allowed to %s on %s with a service key alone: send a key of the model router in Authorization and the service key in the header serviceKey.",
		r.Method, r.URL.Path)
}

// plain reports whether the path of a URL means the same to every server: its
// steps are made of the characters that names of models have, none of them
// escaped, and none leads nowhere or up. Others there are servers which decode a
// second time, take a backslash for a slash, or cut a step off at a semicolon.
func plain(u *url.URL) bool {
	for i := range len(u.Path) {
		switch c := u.Path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("/-._:@+~", c) >= 0:
		default:
			return false
		}
	}
	return u.RawPath == "" && path.Clean(u.Path) == u.Path
}

// operatorsKeyRefused stands in for the router's 401 to the operator's key. It
// isn't the client's key that is wrong, and the router may have quoted it.
var operatorsKeyRefused = &openai.Error{
	Status: http.StatusBadGateway, Type: openai.TypeServer, Final: true,
	Message: "The model router refused the key that this service is configured with.",
}
