package redis

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// element is an exchange as it is in the log.
func element(e store.Exchange) string {
	return fmt.Sprintf("%d:%d:0:%d:%d:%s%s", e.Seq, e.Offset, len(e.Messages), e.Tokens(), idDigest(e.ID), encodeExchange(&e))
}

func someExchange() store.Exchange {
	return store.Exchange{
		ID: "e:1", Seq: 7, Offset: -3, Created: time.UnixMilli(1_700_000_000_123).UTC(), Model: "m", Finish: "stop", Hidden: true,
		Carried: store.Digest{1, 2}, Passages: []store.ChunkRef{{FileID: "f", N: 3}}, Recalled: []store.MessageRef{{Seq: 6, N: 1}},
		Messages: []store.Message{{JSON: []byte(`{"a":1}`), Tokens: 5, Digest: store.Digest{9}}, {JSON: []byte(`{}`), Tokens: 2}},
	}
}

func TestExchangesComeBackAsTheyWere(t *testing.T) {
	child := someExchange()
	child.Parent = "e:0"
	for _, want := range []store.Exchange{someExchange(), child, {Created: time.UnixMilli(0).UTC(), Messages: []store.Message{}}} {
		if got, err := decodeExchange(element(want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

// recordOfOld is a record as versions wrote it before exchanges had parents.
const recordOfOld = "01f6a1abfef9620107000000000000000000000000000000026531016d0473746f7003016604250100000000000000000000000000000000060f0000000000000000000000000000000002025b7b22726f6c65223a2275736572227d2c7b7d5d"

// TestProxiesOfTwoVersionsReadOneAnother holds the layout: while proxies are
// upgraded one by one, each reads what the other saves.
func TestProxiesOfTwoVersionsReadOneAnother(t *testing.T) {
	want := store.Exchange{
		ID: "e1", Seq: 1, Created: time.UnixMilli(1_700_000_000_123).UTC(), Model: "m", Finish: "stop", Hidden: true, Carried: store.Digest{7},
		Passages: []store.ChunkRef{{FileID: "f", N: 2}},
		Messages: []store.Message{{JSON: []byte(`{"role":"user"}`), Tokens: 3}, {JSON: []byte(`{}`), Tokens: 1}},
	}
	record, err := hex.DecodeString(recordOfOld)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeExchange(fmt.Sprintf("1:0:0:2:4:%s%s", idDigest("e1"), record)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got := encodeExchange(&want); !bytes.Equal(got, record) {
		t.Errorf("wrote %x, want %s", got, recordOfOld)
	}
	record[0] = 9
	if _, err := decodeExchange(fmt.Sprintf("1:0:0:2:4:%s%s", idDigest("e1"), record)); !errors.Is(err, errNewer) {
		t.Errorf("got %v", err)
	}
}

func TestCorruptExchangesAreAnError(t *testing.T) {
	whole := element(someExchange())
	for i := range whole {
		if _, err := decodeExchange(whole[:i]); err == nil {
			t.Errorf("cut to %d of %d bytes it was accepted", i, len(whole))
		}
	}
	for _, text := range []string{"x:0:0:0:0:", "1:y:0:0:0:", ":::::", whole + " "} {
		if _, err := decodeExchange(text); err == nil {
			t.Errorf("%.20q was accepted", text)
		}
	}
}

func FuzzDecodeExchange(f *testing.F) {
	f.Add(element(someExchange()))
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = decodeExchange(string([]byte(text))) // it must not panic
	})
}
