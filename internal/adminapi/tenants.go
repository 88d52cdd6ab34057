package adminapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/backstory-proxy/backstory/internal/keyring"
	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/store"
)

// Tenant is a tenant as the admin API lists it.
type Tenant struct {
	Object string `json:"object"` // tenant
	Tenant string `json:"tenant"`
	Keys   int    `json:"keys"`   // that are good
	Tokens int64  `json:"tokens"` // used this month, as far as they are counted
}

// serveTenants lists the tenants.
func (a *API) serveTenants(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return notAllowed(w, r, "GET")
	}
	names, err := a.shared.Tenants(r.Context())
	if err != nil {
		return err
	}
	keys, err := a.allKeys(r.Context(), "")
	if err != nil {
		return err
	}
	good := map[string]int{}
	for _, k := range keys {
		if at, there := slices.BinarySearch(names, k.Tenant); !there { // of the configuration alone
			names = slices.Insert(names, at, k.Tenant)
		}
		if a.describe(k).Status == "active" {
			good[k.Tenant]++
		}
	}
	list := make([]Tenant, len(names))
	for i, name := range names {
		list[i] = Tenant{Object: "tenant", Tenant: name, Keys: good[name]}
		if list[i].Tokens, err = a.shared.Usage(r.Context(), store.Scope{Tenant: name}, store.MonthOf(time.Now())); err != nil {
			return err
		}
	}
	return writeList(w, list)
}

// Receipt says what was deleted of a tenant.
type Receipt struct {
	Object   string `json:"object"` // tenant.deleted
	Tenant   string `json:"tenant"`
	Deleted  bool   `json:"deleted"`
	Keys     int    `json:"keys"`
	Sessions int    `json:"sessions"`
	Messages int64  `json:"messages"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"` // of the files
	Chunks   int    `json:"chunks"`
	Vectors  int    `json:"vectors"`
	// ConfiguredKeys are good still: they stand in the configuration.
	ConfiguredKeys int `json:"configured_keys"`
}

// serveTenant deletes a tenant.
func (a *API) serveTenant(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodDelete {
		return notAllowed(w, r, "DELETE")
	}
	tenant := strings.TrimPrefix(r.URL.Path, TenantsPath+"/")
	if !keyring.ValidTenant(tenant) {
		return errorf(http.StatusBadRequest, "a tenant's name is 1 to 64 of a-z, 0-9, '.', '_' and '-'")
	}
	got, err := a.deleteTenant(r.Context(), tenant)
	if err != nil {
		return err
	}
	if *got == (Receipt{ConfiguredKeys: got.ConfiguredKeys}) {
		return errorf(http.StatusNotFound, "the store has nothing of a tenant %q", tenant)
	}
	got.Object, got.Tenant, got.Deleted = "tenant.deleted", tenant, true
	return respond.JSON(w, got)
}

// deleteTenant deletes all that the store has of a tenant: the keys first, so
// that nothing comes after them. What requests under way still save is found by
// another round, or when it is deleted again.
func (a *API) deleteTenant(ctx context.Context, tenant string) (*Receipt, error) {
	got, scope := new(Receipt), store.Scope{Tenant: tenant}
	for _, k := range a.gateway.Keys().Configured() {
		if k.Tenant == tenant {
			got.ConfiguredKeys++
		}
	}
	// That also lists sessions which a crash has kept off the list.
	if _, err := a.shared.Tenants(ctx); err != nil {
		return got, err
	}
	if err := a.shared.DropJournaled(ctx, scope, ""); err != nil {
		return got, err
	}
	for more := true; more; {
		keys, err := a.shared.ForgetTenant(ctx, tenant)
		got.Keys += keys
		if err != nil {
			return got, err
		}
		a.gateway.Keys().ForgetAll()
		before := *got
		if err := a.deleteSessions(ctx, scope, got); err != nil {
			return got, err
		}
		if err := a.deleteFiles(ctx, scope, got); err != nil {
			return got, err
		}
		more = *got != before
	}
	return got, nil
}

// deletePage is how many sessions or files are listed at once to be deleted.
const deletePage = 500

func (a *API) deleteSessions(ctx context.Context, scope store.Scope, got *Receipt) error {
	for {
		list, err := a.shared.ListSessions(ctx, scope, "", deletePage)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, d := range list {
			err := a.shared.DeleteSession(ctx, scope, d.ID)
			if errors.Is(err, store.ErrNotFound) {
				continue // its tenant was faster
			}
			if err != nil {
				return err
			}
			got.Sessions++
			got.Messages += d.Messages
		}
	}
}

func (a *API) deleteFiles(ctx context.Context, scope store.Scope, got *Receipt) error {
	for {
		list, err := a.shared.ListFiles(ctx, scope, store.FileQuery{Limit: deletePage})
		if err != nil || len(list) == 0 {
			return err
		}
		for _, f := range list {
			err := a.shared.DeleteFile(ctx, scope, f.ID)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			got.Files++
			got.Bytes += f.Bytes
			if f.Status == store.FileError {
				continue // its chunks are gone already
			}
			got.Chunks += f.Chunks
			if f.Model != "" {
				got.Vectors += f.Chunks
			}
		}
	}
}
