package redis

import (
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
	for _, want := range []store.Exchange{someExchange(), {Created: time.UnixMilli(0).UTC(), Messages: []store.Message{}}} {
		if got, err := decodeExchange(element(want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
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
