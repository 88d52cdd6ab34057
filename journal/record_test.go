package journal

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

// full is an entry with a value in every field that there is.
func full(t *testing.T) *Entry {
	t.Helper()
	e := new(Entry)
	fill(t, reflect.ValueOf(e).Elem())
	e.Draft.New = 0
	e.Scope.User = "" // see encode
	return e
}

func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMilli(1234567890123).UTC()))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case v.Kind() == reflect.String:
		v.SetString("text\x00\xff")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.CanUint():
		v.SetUint(7)
	default:
		t.Fatalf("a field of type %s: say here what to fill it with, and see that it is kept", v.Type())
	}
}

func TestNothingOfAnEntryIsLost(t *testing.T) {
	e := full(t)
	record, err := encode(e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(record)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, e) {
		t.Errorf("got  %+v\nwant %+v", got, e)
	}
}

func TestNothingOfAnAppendIsLost(t *testing.T) {
	var got asked
	if err := full(t).Save(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(got.a)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() && name != "Seen" && name != "Anyway" { // of a first try, which minds others
			t.Errorf("an entry doesn't hold Append.%s", name)
		}
	}
}

// asked is a store that remembers what it was asked.
type asked struct{ a store.Append }

func (s *asked) Append(_ context.Context, a store.Append) (int64, error) {
	s.a = a
	return 1, nil
}

func FuzzDecode(f *testing.F) {
	record, err := encode(&Entry{Scope: store.Scope{Tenant: "t"}, Session: "s", Draft: memory.Draft{
		Said:     []memory.Said{{Role: "user"}, {Role: "assistant"}, {Role: "user"}},
		Exchange: store.Exchange{ID: "x", Messages: make([]store.Message, 4)},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Add(record[:len(record)-3])
	f.Add([]byte{0, 255})
	f.Fuzz(func(t *testing.T, record []byte) {
		e, err := decode(record)
		if err != nil {
			return
		}
		// What can be read can be replayed, whatever others have saved.
		e.Draft.Rebase([]store.Exchange{e.Draft.Exchange, {Messages: make([]store.Message, 3)}})
	})
}

func TestAUsersExchangeIsNotTakenForTheTenants(t *testing.T) {
	if _, err := encode(&Entry{Scope: store.Scope{Tenant: "t", User: "u"}, Session: "s"}); !errors.Is(err, store.ErrUsers) {
		t.Errorf("got %v, want ErrUsers", err)
	}
}
