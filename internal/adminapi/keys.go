package adminapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/backstory-proxy/backstory/internal/keyring"
	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/store"
)

// DefaultGrace is how long a key that was rotated stays good.
const DefaultGrace = 24 * time.Hour

// KeyIDLength is how much of a key's digest, in hex, names the key.
const KeyIDLength = 12

// keyEdits has one key at a time be changed: what is read is what is replaced.
var keyEdits sync.Mutex

// Key is a service key as the admin API shows it. The key itself is shown
// when it is made, and never again.
type Key struct {
	Object    string `json:"object"` // service_key
	ID        string `json:"id"`
	Key       string `json:"key,omitempty"`
	Tenant    string `json:"tenant"`
	Plan      string `json:"plan"`
	Name      string `json:"name,omitempty"`
	Source    string `json:"source"` // store or configuration
	Status    string `json:"status"` // active, expired, revoked, or no_plan: its plan isn't configured
	CreatedAt int64  `json:"created_at,omitempty"`
	ExpiresAt int64  `json:"expires_at,omitempty"` // Unix seconds; 0: never
	RevokedAt int64  `json:"revoked_at,omitempty"`
	// Replaces is the key that this one was made for, by rotation.
	Replaces *Key `json:"replaces,omitempty"`
}

func (a *API) describe(k store.Key) *Key {
	o := &Key{
		Object: "service_key", ID: keyID(k.Digest), Tenant: k.Tenant, Plan: k.Plan, Name: k.Name,
		Source: "store", Status: "active", CreatedAt: unix(k.Created), ExpiresAt: unix(k.Expires), RevokedAt: unix(k.Revoked),
	}
	if a.gateway.Keys().IsConfigured(k.Digest) {
		o.Source = "configuration"
	}
	switch {
	case !k.Revoked.IsZero():
		o.Status = "revoked"
	case !k.Valid(time.Now()):
		o.Status = "expired"
	case !a.gateway.HasPlan(k.Plan):
		o.Status = "no_plan"
	}
	return o
}

func keyID(digest [32]byte) string { return hex.EncodeToString(digest[:])[:KeyIDLength] }

// CheckKeyID refuses what is no id, such as a key by mistake. The error doesn't
// quote it, as it ends in a log; nor must a path hold it.
func CheckKeyID(id string) error {
	if strings.ContainsFunc(id, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }) {
		return errors.New("a key is named by the id that the list shows, not by the key; revoke takes the key itself from the standard input, with - for the id")
	}
	return nil
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// serveKeys lists the keys, or makes one.
func (a *API) serveKeys(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodGet:
		keys, err := a.allKeys(r.Context(), r.URL.Query().Get("tenant"))
		if err != nil {
			return err
		}
		list := make([]*Key, len(keys))
		for i, k := range keys {
			list[i] = a.describe(k)
		}
		return writeList(w, list)
	case http.MethodPost:
		return a.createKey(w, r)
	}
	return notAllowed(w, r, "GET, POST")
}

// allKeys are those of the configuration, then those of the store, oldest
// first.
func (a *API) allKeys(ctx context.Context, tenant string) ([]store.Key, error) {
	var keys []store.Key
	for _, k := range a.gateway.Keys().Configured() {
		if tenant == "" || k.Tenant == tenant {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y store.Key) int {
		return cmp.Or(strings.Compare(x.Tenant, y.Tenant), slices.Compare(x.Digest[:], y.Digest[:]))
	})
	stored, err := a.shared.ListKeys(ctx, tenant)
	for _, k := range stored {
		if !a.gateway.Keys().IsConfigured(k.Digest) {
			keys = append(keys, k)
		}
	}
	return keys, err
}

func (a *API) createKey(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Tenant    string `json:"tenant"`
		Plan      string `json:"plan"`
		Name      string `json:"name"`
		ExpiresIn string `json:"expires_in"`
	}
	if err := read(r, &in); err != nil {
		return err
	}
	if !keyring.ValidTenant(in.Tenant) {
		return errorf(http.StatusBadRequest, "tenant must be 1 to 64 of a-z, 0-9, '.', '_' and '-'")
	}
	if !a.gateway.HasPlan(in.Plan) {
		return errorf(http.StatusBadRequest, "there is no plan %q", in.Plan)
	}
	if len(in.Name) > maxKeyName {
		return errorf(http.StatusBadRequest, "name is longer than %d bytes", maxKeyName)
	}
	k := store.Key{Tenant: in.Tenant, Plan: in.Plan, Name: in.Name, Created: time.Now()}
	if in.ExpiresIn != "" {
		d, err := a.duration(in.ExpiresIn)
		if err != nil || d <= 0 {
			return errorf(http.StatusBadRequest, "expires_in must be a duration such as 90d, not %q", in.ExpiresIn)
		}
		k.Expires = k.Created.Add(d)
	}
	key, err := a.putNewKey(r.Context(), &k)
	if err != nil {
		return err
	}
	o := a.describe(k)
	o.Key = key
	return respond.JSON(w, o)
}

// maxKeyName bounds the name that an operator gives a key.
const maxKeyName = 256

// putNewKey saves k under a key of its own, and returns that.
func (a *API) putNewKey(ctx context.Context, k *store.Key) (key string, err error) {
	key = keyring.NewKey()
	k.Digest = sha256.Sum256([]byte(key))
	return key, a.shared.PutKey(ctx, *k)
}

// serveKey revokes or rotates one key.
func (a *API) serveKey(w http.ResponseWriter, r *http.Request) error {
	id, action, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, KeysPath+"/"), "/")
	if action != "" && action != "revoke" && action != "rotate" {
		return errorf(http.StatusNotFound, "a key can be revoked and rotated: %s/%s/revoke or /rotate", KeysPath, id)
	}
	if want := map[bool]string{true: http.MethodGet, false: http.MethodPost}[action == ""]; r.Method != want {
		return notAllowed(w, r, want)
	}
	keyEdits.Lock()
	defer keyEdits.Unlock()
	k, err := a.findKey(r.Context(), id)
	if err != nil {
		return err
	}
	switch action {
	case "revoke":
		return a.revokeKey(w, r, k)
	case "rotate":
		return a.rotateKey(w, r, k)
	}
	return respond.JSON(w, a.describe(k))
}

// findKey finds the key whose digest begins like id.
func (a *API) findKey(ctx context.Context, id string) (store.Key, error) {
	const least = 8
	if err := CheckKeyID(id); err != nil {
		return store.Key{}, errorf(http.StatusBadRequest, "%w", err)
	}
	if len(id) < least {
		return store.Key{}, errorf(http.StatusBadRequest, "a key is named by the id that the list shows; %q is too short", id)
	}
	keys, err := a.allKeys(ctx, "")
	if err != nil {
		return store.Key{}, err
	}
	keys = slices.DeleteFunc(keys, func(k store.Key) bool {
		return !strings.HasPrefix(hex.EncodeToString(k.Digest[:]), strings.ToLower(id))
	})
	switch len(keys) {
	case 0:
		return store.Key{}, errorf(http.StatusNotFound, "there is no key %s", id)
	case 1:
		return keys[0], nil
	}
	return store.Key{}, errorf(http.StatusConflict, "%d keys begin with %s", len(keys), id)
}

// changeable refuses to change a key that stands in the configuration.
func (a *API) changeable(k store.Key) error {
	if a.gateway.Keys().IsConfigured(k.Digest) {
		return errorf(http.StatusConflict, "key %s stands in the configuration: change it there, and reload", keyID(k.Digest))
	}
	return nil
}

func (a *API) revokeKey(w http.ResponseWriter, r *http.Request, k store.Key) error {
	if err := a.changeable(k); err != nil {
		return err
	}
	if k.Revoked.IsZero() {
		k.Revoked = time.Now()
		if err := a.shared.PutKey(r.Context(), k); err != nil {
			return err
		}
	}
	a.gateway.Keys().Forget(k.Digest)
	return respond.JSON(w, a.describe(k))
}

// rotateKey makes a key like k, with as long a life, and ends k after a time of
// grace.
func (a *API) rotateKey(w http.ResponseWriter, r *http.Request, k store.Key) error {
	var in struct {
		Grace string `json:"grace"`
	}
	if err := read(r, &in); err != nil {
		return err
	}
	grace := DefaultGrace
	if in.Grace != "" {
		var err error
		if grace, err = a.duration(in.Grace); err != nil || grace < 0 {
			return errorf(http.StatusBadRequest, "grace must be a duration such as 24h, not %q", in.Grace)
		}
	}
	if err := a.changeable(k); err != nil {
		return err
	}
	now := time.Now()
	if !k.Valid(now) {
		return errorf(http.StatusConflict, "key %s is revoked or expired: create a new one", keyID(k.Digest))
	}
	fresh := store.Key{Tenant: k.Tenant, Plan: k.Plan, Name: k.Name, Created: now}
	if !k.Expires.IsZero() {
		fresh.Expires = now.Add(k.Expires.Sub(k.Created))
	}
	key, err := a.putNewKey(r.Context(), &fresh)
	if err != nil {
		return err
	}
	if end := now.Add(grace); k.Expires.IsZero() || end.Before(k.Expires) {
		k.Expires = end
	}
	if err := a.shared.PutKey(r.Context(), k); err != nil {
		return err
	}
	a.gateway.Keys().Forget(k.Digest)
	o := a.describe(fresh)
	o.Key, o.Replaces = key, a.describe(k)
	return respond.JSON(w, o)
}
