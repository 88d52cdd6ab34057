package memory_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

// stored makes exchanges of lists of short messages.
func stored(lists ...string) (log []store.Exchange) {
	for i, list := range lists {
		e := store.Exchange{Seq: int64(i + 1), ID: fmt.Sprint(i), Created: noon, Finish: memory.FinishImported}
		for _, m := range parse(list) {
			e.Messages = append(e.Messages, store.Message{JSON: m.JSON, Tokens: 5, Digest: memory.Digest(&m)})
		}
		log = append(log, e)
	}
	return log
}

// TestReconcilingIsLinear counts the bytes that Reconcile allocates. Four times the
// messages may take little more than four times as many: that counting is quadratic
// shows in lists that are copied for every message.
func TestReconcilingIsLinear(t *testing.T) {
	ids := func(n int, name string, reverse bool) []string {
		var list []string
		for i := range n {
			if reverse {
				i = n - 1 - i
			}
			list = append(list, fmt.Sprint(name, i))
		}
		return list
	}
	each := func(n int, list string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(list, "#", fmt.Sprint(i)) + " ")
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		log     func(n int) []store.Exchange
		request string
		groups  func(n int) int
	}{
		"results in reverse order": {func(n int) []store.Exchange {
			return stored("u:A c:" + strings.Join(ids(n, "", false), ",") + " r:" + strings.Join(ids(n, "", true), " r:") + " a:b")
		}, "u:new", func(int) int { return 1 }},
		"results whose calls are further back": {func(n int) []store.Exchange {
			lists := []string{each(n, "u:# c:#,x#")}
			for i := range n {
				lists = append(lists, fmt.Sprintf("r:%d r:x%d a:b", n-1-i, n-1-i))
			}
			return stored(lists...)
		}, "u:new", func(n int) int { return n }},
		"results without calls": {func(n int) []store.Exchange {
			return stored(append([]string{each(n, "u:# c:#,x# r:x# r:# a:b")}, strings.Fields(each(n, "r:none"))...)...)
		}, "r:none u:new", func(n int) int { return n }},
		"one id for every call": {func(n int) []store.Exchange {
			return stored(each(n, "c:x,y"))
		}, "r:x u:new", func(n int) int { return 0 }},
		"a history in one exchange": {func(n int) []store.Exchange {
			return stored(each(n, "u:# a:#"))
		}, "u:new", func(n int) int { return n }},
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				log, conv := c.log(n), memory.Conversation(parse(c.request))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r := memory.Reconcile(log, conv, false, noon)
				runtime.ReadMemStats(&after)
				if got, want := len(r.Groups), c.groups(n); got != want {
					t.Fatalf("%d groups are included, want %d", got, want)
				}
				return float64(after.TotalAlloc - before.TotalAlloc)
			}
			if few, many := cost(500), cost(2000); many > 6*few {
				t.Errorf("%.0f bytes for 500, %.0f for 2000: %.1f times as many", few, many, many/few)
			}
		})
	}
}
