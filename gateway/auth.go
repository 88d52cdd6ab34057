package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/internal/keyring"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// gate lets requests in: those whose keys are good, at the rate of their plan.
type gate struct {
	keys      *keyring.Keyring
	plans     map[string]Plan
	routerKey string // the operator's; empty: none
	shared    *Shared
	refusals  refusals
}

// caller is who sends a request.
type caller struct {
	scope      store.Scope
	plan       Plan
	planName   string
	onOperator bool // the operator's router key stands for theirs
}

// authenticate checks both keys, and takes ours off the request.
func (gt *gate) authenticate(r *http.Request) (caller, error) {
	if gt.keyInURL(r.URL.RawQuery) {
		return caller{}, openai.StatusError(http.StatusUnauthorized,
			"A service key in a URL is not accepted: URLs are logged on their way. Send it in the header serviceKey. If the key was a real one, replace it.")
	}
	keys := r.Header.Values(upstream.HeaderServiceKey)
	if slices.ContainsFunc(keys, func(other string) bool { return other != keys[0] }) {
		return caller{}, openai.StatusError(http.StatusUnauthorized, "You provided two different service keys. Send one header serviceKey.")
	}
	key := r.Header.Get(upstream.HeaderServiceKey)
	if key == "" && gt.routerKey != "" {
		return gt.authenticateOne(r)
	}
	if key == "" {
		return caller{}, openai.StatusError(http.StatusUnauthorized,
			"You didn't provide a service key. Send it in the header serviceKey, beside the model router's key in Authorization.")
	}
	authorization := r.Header.Values("Authorization")
	words := strings.FieldsFunc(strings.Join(authorization, " "), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	if len(authorization) != 1 || len(words) < 2 || !strings.EqualFold(words[0], "Bearer") {
		return caller{}, openai.StatusError(http.StatusUnauthorized,
			"You didn't provide the model router's key. Send it in the header Authorization: Bearer …")
	}
	found, plan, err := gt.lookup(r.Context(), key)
	if errors.Is(err, keyring.ErrBadKey) {
		return caller{}, openai.StatusError(http.StatusUnauthorized, "Incorrect service key provided in the header serviceKey.")
	}
	if err != nil {
		return caller{}, &unavailable{err}
	}
	if slices.ContainsFunc(words, func(word string) bool { return word == key || gt.keys.Ours(word) }) {
		return caller{}, openai.StatusError(http.StatusUnauthorized,
			"Authorization holds a service key. It carries the model router's key; the service key goes into the header serviceKey.")
	}
	r.Header.Del(upstream.HeaderServiceKey)
	return caller{scope: store.Scope{Tenant: found.Tenant}, plan: plan, planName: found.Plan}, nil
}

// keyInURL reports whether a query carries a service key: one by its name, in any
// case, or by what it is, under any name. The router would be sent it, and every
// server on the way logs it.
func (gt *gate) keyInURL(query string) bool {
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		if strings.EqualFold(unescape(name), "serviceKey") || gt.keys.Ours(unescape(value)) || gt.keys.Ours(unescape(name)) {
			return true
		}
	}
	return false
}

// unescape decodes a part of a query; one that can't be decoded stays as it is.
func unescape(part string) string {
	if text, err := url.QueryUnescape(part); err == nil {
		return text
	}
	return part
}

// lookup finds a service key and its plan. Errors other than keyring.ErrBadKey are
// the store's.
func (gt *gate) lookup(ctx context.Context, key string) (store.Key, Plan, error) {
	found, cached, err := gt.keys.Lookup(ctx, gt.shared, key)
	if !gt.keys.IsConfigured(found.Digest) {
		stats.KeyLookups.Count(cached)
	}
	if err != nil {
		return found, Plan{}, err
	}
	plan, ok := gt.plans[found.Plan]
	if !ok {
		return found, plan, keyring.ErrBadKey
	}
	return found, plan, nil
}
