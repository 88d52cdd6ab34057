package journal

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"os"
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

// recordOfOld is an entry as versions wrote it before exchanges had parents, and
// scopes users.
const recordOfOld = "5b7f03010105456e74727901ff80000107010654656e616e74010c00010753657373696f6e010c000105447261667401ff8200010553617665640102" +
	"0001044d61726b01ff9a000105557361676501ff9c00010354544c010400000040ff8103010105447261667401ff82000104010845786368616e6765" +
	"01ff840001045361696401ff980001034e657701040001085265706c616365730104000000ff94ff830301010845786368616e676501ff8400010b01" +
	"024944010c00010353657101040001064f666673657401040001074372656174656401ff860001054d6f64656c010c00010646696e697368010c0001" +
	"0648696464656e01020001074361727269656401ff88000108506173736167657301ff8c000108526563616c6c656401ff900001084d657373616765" +
	"7301ff9400000010ff850501010454696d6501ff8600000016ff870101010644696765737401ff88000106012000001fff8b020101105b5d73746f72" +
	"652e4368756e6b52656601ff8c0001ff8a000027ff89030101084368756e6b52656601ff8a000102010646696c654944010c0001014e010400000021" +
	"ff8f020101125b5d73746f72652e4d65737361676552656601ff900001ff8e000036ff8d0301010a4d65737361676552656601ff8e00010401035365" +
	"7101040001014e010400010446726f6d0104000102546f01040000001eff930201010f5b5d73746f72652e4d65737361676501ff940001ff92000042" +
	"ff91030101074d65737361676501ff9200010401044a534f4e010a000106546f6b656e73010400010644696765737401ff8800010743726561746564" +
	"01ff860000001cff970201010d5b5d6d656d6f72792e5361696401ff980001ff96000031ff95030101045361696401ff960001030105496e64657801" +
	"04000104526f6c65010c00010644696765737401ff8800000024ff99030101044d61726b01ff9a0001020103536571010400010545706f6368010400" +
	"000027ff9b030101045573656401ff9c00010201054d6f6e74680104000106546f6b656e730104000000ffdaff80010461636d650101730101010265" +
	"31030f010000000edce5e8000754d4c0ffff01016d010473746f7002100700000000000000000000000000000001010101660104000202010f7b2272" +
	"6f6c65223a2275736572227d01060110000000000000000000000000000000000001027b7d0102011000000000000000000000000000000000000001" +
	"020204757365720110000000000000000000000000000000000002047573657201100000000000000000000000000000000000010201060001010101" +
	"080112000101febdf401ff8c0001fa068c6171400000"

func TestAnEntryOfAnOldVersionIsRead(t *testing.T) {
	record, err := hex.DecodeString(recordOfOld)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(record)
	want := &Entry{
		Scope: store.Scope{Tenant: "acme"}, Session: "s", Saved: true,
		Mark: store.Mark{Seq: 4, Epoch: 9}, Usage: store.Used{Month: 24314, Tokens: 70}, TTL: time.Hour,
		Draft: memory.Draft{New: 1, Replaces: 3, Said: []memory.RequestMessage{{Role: "user"}, {Role: "user"}}, Exchange: store.Exchange{
			ID: "e1", Created: time.UnixMilli(1_700_000_000_123).UTC(), Model: "m", Finish: "stop", Carried: store.Digest{7},
			Passages: []store.ChunkRef{{FileID: "f", N: 2}},
			Messages: []store.Message{{JSON: []byte(`{"role":"user"}`), Tokens: 3}, {JSON: []byte(`{}`), Tokens: 1}},
		}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// The form of a record is fixed: what waits in a journal outlives the version that
// wrote it. A new field may be added to it, and to this; a change of what is there
// needs a new version.
func TestTheFormOfARecordStays(t *testing.T) {
	const path = "testdata/record-2"
	got, err := encode(full(t))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if e, err := decode(want); err != nil || !reflect.DeepEqual(e, full(t)) {
		t.Errorf("it reads %+v, %v", e, err)
	}
}

var update = flag.Bool("update", false, "record the form of a record anew")

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
		Said:     []memory.RequestMessage{{Role: "user"}, {Role: "assistant"}, {Role: "user"}},
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
