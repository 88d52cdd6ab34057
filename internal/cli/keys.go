package cli

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/backstory-proxy/backstory/internal/adminapi"
)

func (a Admin) keysCommands() Command {
	return Command{
		Name:  "keys",
		Short: "Creates, lists, revokes and rotates service keys",
		Long: `
Manages the service keys of the running instance, over its admin API.

A key is shown once, on the standard output, when it is created; only its digest
is stored. A change takes effect at once in the instance that is asked, and
within 10 seconds in others that share its store. Keys in the configuration are
listed too; change them there.`,
		Setup: func(c *cobra.Command) {
			create := a.operate("create --tenant <tenant> --plan <plan> [--expires <duration>] [--name <text>]", "Creates a key", cobra.NoArgs, createKeyCommand)
			create.Flags().String("tenant", "", "The tenant that the key belongs to: 1 to 64 of a-z, 0-9, '.', '_', '-'")
			create.Flags().String("plan", "", "The plan that limits it")
			create.Flags().String("expires", "", "How long it is valid, such as 90d (default: forever)")
			create.Flags().String("name", "", "What it is for")
			list := a.operate("list [--tenant <tenant>]", "Lists the keys", cobra.NoArgs, listKeysCommand)
			list.Flags().String("tenant", "", "Only the keys of this tenant")
			revoke := a.operate("revoke <id>", "Revokes a key; with - as the id, reads the key from the standard input", cobra.ExactArgs(1), revokeKeyCommand)
			rotate := a.operate("rotate <id> [--grace <duration>]", "Creates a key to replace another, which expires after a grace period", cobra.ExactArgs(1), rotateKeyCommand)
			rotate.Flags().String("grace", adminapi.DefaultGrace.String(), "How long the old key stays valid; 0s: not at all")
			group(c, create, list, revoke, rotate)
		},
	}
}

func createKeyCommand(o *operator, fl flags) error {
	in := map[string]string{"tenant": fl.String("tenant"), "plan": fl.String("plan"), "name": fl.String("name"), "expires_in": fl.String("expires")}
	var k adminapi.Key
	if shown, err := o.call(http.MethodPost, adminapi.KeysPath, in, &k); err != nil || shown {
		return err
	}
	return o.showNewKey(&k)
}

// showNewKey writes the key alone to the standard output, for scripts, and all
// else to the standard error.
func (o *operator) showNewKey(k *adminapi.Key) error {
	if err := writeKeys(o.err, []*adminapi.Key{k}); err != nil {
		return err
	}
	fmt.Fprint(o.err, "\nThe key, which is shown only once; clients send it in the header serviceKey:\n\n")
	_, err := fmt.Fprintln(o.out, k.Key)
	return err
}

func listKeysCommand(o *operator, fl flags) error {
	var list adminapi.List[*adminapi.Key]
	path := adminapi.KeysPath
	if tenant := fl.String("tenant"); tenant != "" {
		path += "?tenant=" + url.QueryEscape(tenant)
	}
	if shown, err := o.call(http.MethodGet, path, nil, &list); err != nil || shown {
		return err
	}
	return writeKeys(o.out, list.Data)
}

func revokeKeyCommand(o *operator, fl flags) error {
	id, err := o.keyID(fl.Arg(0))
	if err != nil {
		return err
	}
	var k adminapi.Key
	if shown, err := o.call(http.MethodPost, adminapi.KeysPath+"/"+id+"/revoke", nil, &k); err != nil || shown {
		return err
	}
	return writeKeys(o.out, []*adminapi.Key{&k})
}

// keyID is the id given, or that of the key on the standard input: what stands
// on the command line, others on the machine can read.
func (o *operator) keyID(arg string) (string, error) {
	if arg != "-" {
		return arg, adminapi.CheckKeyID(arg)
	}
	line, err := bufio.NewReader(o.in).ReadString('\n')
	if err != nil && err != io.EOF { //nolint:errorlint // as ReadString documents it
		return "", err
	}
	digest := sha256.Sum256([]byte(strings.TrimSpace(line)))
	return hex.EncodeToString(digest[:])[:2*adminapi.KeyIDLength], nil
}

func rotateKeyCommand(o *operator, fl flags) error {
	if err := adminapi.CheckKeyID(fl.Arg(0)); err != nil {
		return err
	}
	var k adminapi.Key
	path := adminapi.KeysPath + "/" + fl.Arg(0) + "/rotate"
	if shown, err := o.call(http.MethodPost, path, map[string]string{"grace": fl.String("grace")}, &k); err != nil || shown {
		return err
	}
	fmt.Fprintf(o.err, "The old key, %s, is valid until %s.\n\n", k.Replaces.ID, day(k.Replaces.ExpiresAt))
	return o.showNewKey(&k)
}

func writeKeys(to io.Writer, list []*adminapi.Key) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTENANT\tPLAN\tNAME\tSTATUS\tCREATED\tEXPIRES\tSOURCE")
	for _, k := range list {
		// A name could hold what a terminal obeys.
		name := strings.Trim(fmt.Sprintf("%q", k.Name), `"`)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Tenant, k.Plan, cmp.Or(name, "-"), k.Status, day(k.CreatedAt), day(k.ExpiresAt), k.Source)
	}
	return w.Flush()
}

// day shows a time that is set.
func day(unix int64) string {
	if unix == 0 {
		return "-"
	}
	return time.Unix(unix, 0).UTC().Format("2006-01-02 15:04Z")
}
