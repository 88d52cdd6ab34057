package caddymodule_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/tidwall/gjson"
)

// childCommand is set where this binary, run again, is to be the program with
// its arguments.
const childCommand = "BACKSTORY_TEST_COMMAND"

func commandChild() bool {
	if os.Getenv(childCommand) == "" {
		return false
	}
	caddycmd.Main()
	return true
}

// operated is a site with an admin API.
type operated struct {
	*site
	admin string
}

func operate(t *testing.T, o options) *operated {
	t.Helper()
	o.admin = freeAddress(t)
	return &operated{site: start(t, o), admin: o.admin}
}

// run runs a command of the program, and returns what it wrote.
func (o *operated) run(input string, args ...string) (out, errOut string, status int) {
	o.t.Helper()
	cmd := exec.Command(os.Args[0], append(args, "--address", o.admin)...)
	cmd.Env = append(os.Environ(), childCommand+"=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		o.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// must runs a command that must succeed.
func (o *operated) must(args ...string) string {
	o.t.Helper()
	out, errOut, status := o.run("", args...)
	if status != 0 {
		o.t.Fatalf("%v: status %d: %s%s", args, status, out, errOut)
	}
	return out
}

// call sends a request to the admin API.
func (o *operated) call(method, path, body string) (int, string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), method, "http://"+o.admin+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (o *operated) status(key string) int {
	o.t.Helper()
	return o.get(key, "/sessions").status
}

func TestTheAdminAPIShowsTheMetricsAfterABadReload(t *testing.T) {
	o := operate(t, options{upstream: newFake(t).URL})
	bad := `{"admin": {"listen": "` + o.admin + `"}, "apps": {"backstory": {"keys": [{"key": "k", "tenant": "acme", "plan": "none"}]}}}`
	err := caddy.Load([]byte(bad), true)
	if err == nil || !strings.Contains(err.Error(), "there is no plan") {
		t.Fatalf("got %v", err)
	}
	eventually(t, "the metrics are there", func() bool {
		res, err := http.Get("http://" + o.admin + "/metrics")
		if err != nil { // the server before is going away
			return false
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return err == nil && strings.Contains(string(text), "\nbackstory_journal_depth ")
	})
}

func TestACommandToldAnotherAddress(t *testing.T) {
	o := operate(t, options{upstream: newFake(t).URL})
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer other.Close()
	o.admin = other.Listener.Addr().String()
	for _, args := range [][]string{{"keys", "list"}, {"keys", "list", "--json"}} {
		if out, errOut, status := o.run("", args...); status != 1 || out != "" || !strings.Contains(errOut, "isn't Caddy's admin API") {
			t.Errorf("status %d: %q, %q", status, out, errOut)
		}
	}
}

func TestKeysFromTheCommandLine(t *testing.T) {
	o := operate(t, options{upstream: newFake(t).URL})
	out, about, _ := o.run("", "keys", "create", "--tenant", "gamma", "--plan", "pro", "--expires", "90d", "--name", "ci")
	key := strings.TrimSpace(out)
	if !strings.HasPrefix(key, "bsk_") || strings.ContainsAny(key, " \n") || !strings.Contains(about, "gamma") || strings.Contains(about, key) {
		t.Fatalf("stdout %q, stderr %q", out, about)
	}
	if r := o.ok(o.get(key, "/usage")); r.get("plan").Str != "pro" {
		t.Errorf("got %s", r.body)
	}

	list := gjson.Parse(o.must("keys", "list", "--tenant", "gamma", "--json"))
	k := list.Get("data.0")
	if list.Get("data.#").Int() != 1 || k.Get("status").Str != "active" || k.Get("name").Str != "ci" || k.Get("source").Str != "store" || k.Get("key").Exists() {
		t.Errorf("got %s", list.Raw)
	}
	if life := time.Until(time.Unix(k.Get("expires_at").Int(), 0)); life < 89*24*time.Hour || life > 90*24*time.Hour {
		t.Errorf("it expires in %s", life)
	}
	table := o.must("keys", "list")
	for _, want := range []string{"ID ", "gamma", "active", "configuration", "acme"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}

	id := k.Get("id").Str
	rotated := gjson.Parse(o.must("keys", "rotate", id, "--grace", "1h", "--json"))
	second := rotated.Get("key").Str
	if life := time.Until(time.Unix(rotated.Get("replaces.expires_at").Int(), 0)); life < 59*time.Minute || life > time.Hour {
		t.Errorf("the old key ends in %s", life)
	}
	if life := time.Until(time.Unix(rotated.Get("expires_at").Int(), 0)); life < 89*24*time.Hour {
		t.Errorf("the new key ends in %s", life)
	}
	if o.status(key) != http.StatusOK || o.status(second) != http.StatusOK {
		t.Error("both must be good for the time of grace")
	}
	out, _, _ = o.run("", "keys", "rotate", rotated.Get("id").Str, "--grace", "0s")
	third := strings.TrimSpace(out)
	if o.status(second) != http.StatusUnauthorized || o.status(third) != http.StatusOK {
		t.Error("without grace the old key must end at once, and the new one be good")
	}

	o.must("keys", "revoke", id)
	if o.status(key) != http.StatusUnauthorized {
		t.Error("a key that was revoked is good still")
	}
	if out, errOut, status := o.run(third+"\n", "keys", "revoke", "-"); status != 0 {
		t.Errorf("%s%s", out, errOut)
	}
	if o.status(third) != http.StatusUnauthorized {
		t.Error("a key that was revoked is good still")
	}
	log := o.logged()
	for _, secret := range []string{key, second, third, key[4:20]} {
		if strings.Contains(log, secret) {
			t.Error("a key stands in the log")
		}
	}
	if !strings.Contains(log, "/backstory/keys") {
		t.Error("the log doesn't hold the admin API's requests: nothing was tested")
	}
}

func TestCommandsSayWhatIsWrong(t *testing.T) {
	o := operate(t, options{upstream: newFake(t).URL})
	acmeID := gjson.Get(o.must("keys", "list", "--tenant", "acme", "--json"), "data.0.id").Str
	revoked := gjson.Parse(o.must("keys", "create", "--tenant", "gamma", "--plan", "pro", "--json")).Get("id").Str
	o.must("keys", "revoke", revoked)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a bad tenant":         {[]string{"keys", "create", "--tenant", "Acme!", "--plan", "pro"}, "tenant must be"},
		"an unknown plan":      {[]string{"keys", "create", "--tenant", "gamma", "--plan", "gold"}, "there is no plan"},
		"a bad duration":       {[]string{"keys", "create", "--tenant", "gamma", "--plan", "pro", "--expires", "soon"}, "such as 90d"},
		"a configured key":     {[]string{"keys", "revoke", acmeID}, "stands in the configuration"},
		"nor to rotate":        {[]string{"keys", "rotate", acmeID}, "stands in the configuration"},
		"a key that ended":     {[]string{"keys", "rotate", revoked}, "revoked or expired"},
		"an unknown key":       {[]string{"keys", "revoke", "0123456789ab"}, "there is no key"},
		"half an id":           {[]string{"keys", "revoke", "01"}, "too short"},
		"a key for its id":     {[]string{"keys", "revoke", acme}, "not by the key"},
		"nor to be rotated":    {[]string{"keys", "rotate", acme}, "not by the key"},
		"an unknown tenant":    {[]string{"tenants", "rm", "nobody", "--yes"}, "has nothing of a tenant"},
		"nobody to ask":        {[]string{"tenants", "rm", "acme"}, "confirm with --yes"},
		"an unknown command":   {[]string{"keys", "lsit", "--"}, `unknown command "lsit"`},
		"a tenant that is all": {[]string{"tenants", "rm", "", "--yes"}, "1 to 64"},
	} {
		out, errOut, status := o.run("", c.args...)
		if status != 1 || out != "" || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want %s", name, status, out, errOut, c.want)
		}
	}
	if strings.Contains(o.logged(), acme) {
		t.Error("a key that was given for its id stands in the log")
	}
	o.admin = "127.0.0.1:1"
	if _, errOut, status := o.run("", "keys", "list"); status != 1 || !strings.Contains(errOut, "no instance answers at 127.0.0.1:1") {
		t.Errorf("status %d: %s", status, errOut)
	}
}

func TestADeletedTenantLeavesNothing(t *testing.T) {
	o := operate(t, options{upstream: newFake(t).URL, app: "plan metered 1000 {\ntokens_per_month 1M\n}"})
	key := strings.TrimSpace(o.must("keys", "create", "--tenant", "gamma", "--plan", "metered"))
	for i := range 3 {
		o.chat(key, "hi", fmt.Sprintf(`"sessionId":"s%d"`, i))
		o.chat(acme, "hi", fmt.Sprintf(`"sessionId":"s%d"`, i))
	}
	o.ok(o.upload(key, "a.txt", "The answer is forty-two."))
	o.ok(o.upload(acme, "a.txt", "The answer is forty-two."))
	list := o.must("tenants", "list")
	if !strings.Contains(list, "gamma") || !strings.Contains(list, "acme") || !strings.Contains(list, " 6\n") || !strings.Contains(list, "tiny") {
		t.Errorf("got\n%s", list)
	}
	got := gjson.Parse(o.must("tenants", "rm", "gamma", "--yes", "--json"))
	want := `{"object":"tenant.deleted","tenant":"gamma","deleted":true,"keys":1,"sessions":3,"messages":6,"files":1,"bytes":24,"chunks":1,"vectors":1,"configured_keys":0}`
	if !equalJSON(got.Value(), gjson.Parse(want).Value()) {
		t.Errorf("got %s, want %s", got.Raw, want)
	}
	if o.status(key) != http.StatusUnauthorized {
		t.Error("its key is good still")
	}
	if strings.Contains(o.must("tenants", "list"), "gamma") {
		t.Error("it is still listed")
	}
	// What comes under the same name begins anew, and nobody else was touched.
	again := strings.TrimSpace(o.must("keys", "create", "--tenant", "gamma", "--plan", "metered"))
	u := o.ok(o.get(again, "/usage"))
	if u.get("tokens.used").Int() != 0 || u.get("files.used").Int() != 0 || o.get(again, "/sessions").get("data.#").Int() != 0 {
		t.Errorf("something is left: %s", u.body)
	}
	if o.get(acme, "/sessions").get("data.#").Int() != 3 || o.ok(o.get(acme, "/usage")).get("files.used").Int() != 1 {
		t.Error("another tenant lost something")
	}
	if out, errOut, status := o.run("", "tenants", "rm", "acme", "--yes"); status != 0 || !strings.Contains(errOut, "1 of its keys are in the configuration") || !strings.Contains(out, "sessions") {
		t.Errorf("status %d: %s%s", status, out, errOut)
	}
}

func TestAKeyWhoseStoreIsSharedEndsOnEveryProxy(t *testing.T) {
	t.Parallel() // the proxies are other processes
	database := "sqlite " + filepath.Join(t.TempDir(), "b.db")
	first := processOptions{upstream: newFake(t).URL, store: database, admin: freeAddress(t), address: freeAddress(t)}
	one, _ := startProcessWith(t, first)
	o := &operated{site: one, admin: first.admin}
	key := strings.TrimSpace(o.must("keys", "create", "--tenant", "gamma", "--plan", "pro"))
	other, _ := startProcess(t, newFake(t).URL, database)
	if other.get(key, "/sessions").status != http.StatusOK {
		t.Fatal("the other process doesn't know the key")
	}
	o.must("keys", "revoke", gjson.Get(o.must("keys", "list", "--tenant", "gamma", "--json"), "data.0.id").Str)
	begun := time.Now()
	eventually(t, "the key ends on the other process", func() bool { return other.get(key, "/sessions").status == http.StatusUnauthorized })
	if took := time.Since(begun); took > 11*time.Second {
		t.Errorf("it took %s", took)
	}
}
