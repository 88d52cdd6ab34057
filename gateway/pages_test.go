package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// turnsOf are exchanges of two messages of the user, of so many bytes each, and a
// short answer.
func turnsOf(n, size int) string {
	long := strings.Repeat("long ", size/5)
	var list []string
	for range n {
		list = append(list, fmt.Sprintf(`{"role":"user","content":%q},{"role":"user","content":%q},{"role":"assistant","content":"I see."}`, long, long))
	}
	return strings.Join(list, ",")
}

func TestPagesOfLargeMessagesAreShortAndLoseNone(t *testing.T) {
	t.Parallel()
	s := start(t, options{upstream: newFake(t).URL})
	const turns, size = 3, 3 << 20
	imported := s.importInto("s", turnsOf(turns, size))
	if n := imported.get("data.#").Int(); n >= 3*turns || !imported.get("has_more").Bool() {
		t.Errorf("the import is answered with %d messages, more: %v", n, imported.get("has_more"))
	}
	for _, order := range []string{"asc", "desc"} {
		for _, limit := range []int{1, 100} {
			var ids []string
			for after := ""; ; {
				page := s.ok(s.get(acme, fmt.Sprintf("/sessions/s/messages?order=%s&limit=%d&after=%s", order, limit, after)))
				if len(page.body) > store.PageBytes+2*size+10_000 {
					t.Fatalf("a page has %d bytes", len(page.body))
				}
				n := int(page.get("data.#").Int())
				if n == 0 || n > limit || page.get("first_id").Str != page.get("data.0.id").Str {
					t.Fatalf("a page of %d after %q", n, after)
				}
				for _, m := range page.get("data").Array() {
					ids = append(ids, m.Get("id").Str)
				}
				if after = page.get("last_id").Str; after != ids[len(ids)-1] {
					t.Fatalf("last_id is %q", after)
				}
				if !page.get("has_more").Bool() {
					break
				}
			}
			if order == "desc" {
				slices.Reverse(ids)
			}
			if want := "msg_1_0 msg_1_1 msg_1_2 msg_2_0"; len(ids) != 3*turns || !strings.HasPrefix(strings.Join(ids, " "), want) {
				t.Errorf("%s, %d at a time: got %q", order, limit, ids)
			}
		}
	}
}

func TestLargeMessagesLeaveAPromptInItsBounds(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	// A photo takes few tokens, whatever its size.
	const size = 6 << 20
	photo := `[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("iVBO", size/4) + `","detail":"low"}}]`
	for i := range 6 {
		s.importInto("s", fmt.Sprintf(`{"role":"user","content":%s},{"role":"assistant","content":"photo %d"}`, photo, i))
	}
	s.chat(acme, "Which photo was it?", `"sessionId":"s"`)
	body := upstream.last(t).body
	if n := strings.Count(body, "data:image/png"); n == 0 || len(body) > store.TailBytes+size+10_000 {
		t.Errorf("%d photos in %d bytes", n, len(body))
	}
	if !strings.Contains(body, "photo 5") {
		t.Error("the newest is missing")
	}
}
