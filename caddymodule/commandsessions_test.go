package caddymodule_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"
)

func TestSessionsFromTheCommandLine(t *testing.T) {
	o := operate(t, options{upstream: newFake(t).URL})
	o.importInto("a%2F%20b", dialogue(2, `,"created_at":1700000000`)+`,{"role":"user","content":"bell \u0007"}`)
	o.importInto("%2E%2E", dialogue(1, ""))
	o.ok(o.post(beta, "/sessions/secret/messages", `{"messages":[`+dialogue(1, "")+`]}`))

	table := o.must("sessions", "list", "--tenant", "acme")
	if lines := strings.Split(table, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[1], "..  ") || !strings.HasPrefix(lines[2], "a/ b  ") ||
		!strings.Contains(lines[2], "never") || strings.Contains(table, "secret") {
		t.Errorf("got\n%s", table)
	}
	page := gjson.Parse(o.must("sessions", "list", "--tenant", "acme", "--limit", "1", "--after", "..", "--json"))
	if page.Get("data.#").Int() != 1 || page.Get("data.0.id").Str != "a/ b" {
		t.Errorf("got %s", page.Raw)
	}
	shown := o.must("sessions", "show", "--tenant", "acme", "a/ b")
	if !strings.HasPrefix(shown, "a/ b: 5 messages, ") || !strings.Contains(shown, "\n2023-11-14 22:13Z assistant\na1\n") || strings.Contains(shown, "\a") {
		t.Errorf("got\n%s", shown)
	}
	if s := gjson.Parse(o.must("sessions", "show", "--tenant", "acme", "a/ b", "--json")); s.Get("messages").Int() != 5 {
		t.Errorf("got %s", s.Raw)
	}
	if got, want := o.must("sessions", "export", "--tenant", "acme", "a/ b"), o.export("a%2F%20b").body; got != want || strings.Count(got, "\n") != 5 {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := o.must("sessions", "rm", "--tenant", "acme", "..", "a/ b"); got != "deleted ..\ndeleted a/ b\n" {
		t.Errorf("got %q", got)
	}
	if r := o.get(acme, "/sessions"); r.get("data.#").Int() != 0 {
		t.Errorf("left are %s", r.body)
	}
	for _, args := range [][]string{
		{"list"}, {"list", "--tenant", "No Tenant"}, {"list", "--tenant", "acme", "--limit", "0"}, {"list", "--tenant", "acme", "--after", "x"},
		{"show", "--tenant", "acme", "secret"}, {"rm", "--tenant", "acme", "secret"}, {"export", "--tenant", "acme", "secret"}, {"show", "--tenant", "acme"},
	} {
		if out, errOut, status := o.run("", append([]string{"sessions"}, args...)...); status == 0 || errOut == "" {
			t.Errorf("%v: %q %q, status %d", args, out, errOut, status)
		}
	}
	if status, text := o.call("POST", "/backstory/sessions?tenant=acme", ""); status != http.StatusMethodNotAllowed || gjson.Get(text, "error").Str == "" {
		t.Errorf("status %d: %s", status, text)
	}
}

func TestASaveOutlivesAReload(t *testing.T) {
	upstream := newFake(t)
	arrived, release := make(chan bool), make(chan bool)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		arrived <- true
		<-release
		writeReply(w, "late")
	})
	o := options{upstream: upstream.URL, store: "sqlite " + filepath.Join(t.TempDir(), "b.db")}
	s := start(t, o)
	before := *s
	told := make(chan reply)
	go func() { told <- before.chat(acme, "hi", `"sessionId":"s"`) }()
	<-arrived
	s.load(o)
	o.app = "max_body 1MB" // and another time
	s.load(o)
	close(release)
	if r := <-told; r.get("choices.0.message.content").Str != "late" || r.get("_metadata.memory.saved").Exists() {
		t.Errorf("got %s", r.body)
	}
	if got := s.stored("s"); got != "user: hi\nassistant: late\n" {
		t.Errorf("the session holds\n%s", got)
	}
}

func TestASaveOutlivesAGracefulShutdown(t *testing.T) {
	upstream := newFake(t)
	database := "sqlite " + filepath.Join(t.TempDir(), "b.db")
	s, process := startProcess(t, upstream.URL, database)
	const chats = 20
	arrived, release := make(chan bool, chats), make(chan bool)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		arrived <- true
		<-release
		writeReply(w, "late")
	})
	told := make(chan string, chats)
	for i := range chats {
		go func() {
			res, err := http.DefaultClient.Do(s.request("POST", "/chat/completions", acme, strings.NewReader(chatBody(fmt.Sprint("m", i), `"sessionId":"s"`))))
			if err != nil {
				told <- ""
				return
			}
			defer res.Body.Close()
			if _, err := io.ReadAll(res.Body); err != nil {
				told <- "cut off"
				return
			}
			told <- res.Status
		}()
	}
	for range chats {
		<-arrived
	}
	release <- true
	if status := <-told; !strings.HasPrefix(status, "200") {
		t.Fatalf("got %q", status)
	}
	answered := 1
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	close(release) // while it shuts down
	for range chats - 1 {
		if strings.HasPrefix(<-told, "200") {
			answered++
		}
	}
	_ = process.Wait()
	s, _ = startProcess(t, upstream.URL, database)
	r := s.get(acme, "/sessions/s")
	if got := int(r.get("messages").Int()); got < 2*answered {
		t.Errorf("%d chats were answered, and %d messages kept", answered, got)
	}
}

// dialogue is a list of messages, "q0", "a0", "q1", …, as JSON.
func dialogue(turns int, with string) string {
	var list []string
	for i := range turns {
		list = append(list, fmt.Sprintf(`{"role":"user","content":"q%d"%s},{"role":"assistant","content":"a%d"%s}`, i, with, i, with))
	}
	return strings.Join(list, ",")
}

// importInto imports messages that must be accepted.
func (s *site) importInto(session, messages string, header ...string) reply {
	s.t.Helper()
	return s.ok(s.post(acme, "/sessions/"+session+"/messages", `{"messages":[`+messages+`]}`, header...))
}

// stored are the messages of a session as "role: content" lines.
func (s *site) stored(session string) string {
	s.t.Helper()
	var b strings.Builder
	after := ""
	for {
		page := s.ok(s.get(acme, "/sessions/"+session+"/messages?order=asc&limit=100&after="+after))
		for _, m := range page.get("data").Array() {
			b.WriteString(m.Get("role").Str + ": " + m.Get("content").String() + "\n")
		}
		if after = page.get("last_id").Str; !page.get("has_more").Bool() {
			return b.String()
		}
	}
}

// export is a session as JSON Lines.
func (s *site) export(session string) reply {
	s.t.Helper()
	return s.ok(s.do(s.request("GET", "/sessions/"+session+"/messages", acme, nil, "Accept", "application/jsonl")))
}
