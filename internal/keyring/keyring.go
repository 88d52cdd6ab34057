// Package keyring knows the service keys: those of the configuration, and those of
// the store, which it remembers for a short time.
package keyring

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// Key is a service key of the configuration.
type Key struct {
	// Key is the secret itself. Empty with Unset: there is none, and only the
	// rest is checked.
	Key   string
	Unset bool
	// Tenant whom the key belongs to: 1 to 64 of a-z, 0-9, '.', '_', '-'.
	Tenant string
	// Plan is the name of the plan.
	Plan string
}

// minKey is how many bytes a key of the configuration has that can't be guessed:
// 16 random letters and digits are 95 bits, more than anyone can try over the
// network; 8 are 48.
const minKey = 16

// Weak reports whether the key is so short that it may be guessed.
func (k Key) Weak() bool { return !k.Unset && len(k.Key) < minKey }

var tenantName = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)

// ValidTenant reports whether a name can be a tenant's: 1 to 64 of a-z, 0-9, '.',
// '_' and '-'.
func ValidTenant(name string) bool { return tenantName.MatchString(name) }

// Keyring holds the keys. Its methods may be called by several at once.
type Keyring struct {
	configured map[[32]byte]store.Key
	known      *cache
}

// New makes a keyring of the configuration's keys. hasPlan reports whether there
// is a plan of a name.
func New(keys []Key, hasPlan func(name string) bool) (*Keyring, error) {
	k := &Keyring{configured: map[[32]byte]store.Key{}, known: newCache()}
	for i, c := range keys {
		if !ValidTenant(c.Tenant) {
			return nil, fmt.Errorf("key %d: tenant %q must be 1 to 64 of a-z, 0-9, '.', '_' and '-'", i+1, c.Tenant)
		}
		if !hasPlan(c.Plan) {
			return nil, fmt.Errorf("key %d: there is no plan %q", i+1, c.Plan)
		}
		if c.Unset {
			continue
		}
		if c.Key == "" {
			return nil, fmt.Errorf("key %d: the key is empty", i+1)
		}
		if strings.TrimSpace(c.Key) != c.Key {
			return nil, fmt.Errorf("key %d: the key begins or ends with white space, which no header keeps", i+1)
		}
		digest := sha256.Sum256([]byte(c.Key))
		if _, twice := k.configured[digest]; twice {
			return nil, fmt.Errorf("key %d: this key is given twice", i+1)
		}
		k.configured[digest] = store.Key{Digest: digest, Tenant: c.Tenant, Plan: c.Plan}
	}
	return k, nil
}

// Configured are the keys of the configuration, in no order.
func (k *Keyring) Configured() []store.Key { return slices.Collect(maps.Values(k.configured)) }

// IsConfigured reports whether a key stands in the configuration.
func (k *Keyring) IsConfigured(digest [32]byte) bool {
	_, ok := k.configured[digest]
	return ok
}

// ErrBadKey says that a service key isn't known, or no longer good.
var ErrBadKey = errors.New("incorrect service key")

// Lookup finds a key. cached says that the store was not asked. Errors other than
// ErrBadKey are the store's.
func (k *Keyring) Lookup(ctx context.Context, keys store.Keys, key string) (found store.Key, cached bool, err error) {
	digest := sha256.Sum256([]byte(key))
	found, ok := k.configured[digest]
	if ok {
		return found, true, nil
	}
	if found, cached = k.known.get(digest); !cached {
		if !wellFormed(key) { // no trip to the store for a typo
			return found, false, ErrBadKey
		}
		if found, err = keys.Key(ctx, digest); errors.Is(err, store.ErrNotFound) {
			return found, false, ErrBadKey
		}
		if err != nil {
			return found, false, err
		}
		k.known.add(digest, found)
	}
	if !found.Valid(time.Now()) || subtle.ConstantTimeCompare(found.Digest[:], digest[:]) != 1 {
		return found, cached, ErrBadKey
	}
	return found, cached, nil
}

// Ours reports whether a text is a service key, or looks like one: it must not go
// anywhere.
func (k *Keyring) Ours(text string) bool {
	return wellFormed(text) || k.IsConfigured(sha256.Sum256([]byte(text)))
}

// Forget has a key be looked up again, because it was changed.
func (k *Keyring) Forget(digest [32]byte) { k.known.Remove(digest) }

// ForgetAll is Forget for all keys.
func (k *Keyring) ForgetAll() { k.known.Purge() }
