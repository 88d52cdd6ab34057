package cli

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/backstory-proxy/backstory/internal/adminapi"
)

func (a Admin) tenantsCommands() Command {
	return Command{
		Name:  "tenants",
		Short: "Lists and deletes tenants",
		Long: `
Lists the tenants in the running instance's store, and deletes everything of
one: keys, sessions, files and usage. Works over the instance's admin API.

Other instances that share the store may accept the tenant's keys for 10 more
seconds, and save what running requests bring. To be sure, delete the tenant
again after that.`,
		Setup: func(c *cobra.Command) {
			list := a.operate("list", "Lists the tenants", cobra.NoArgs, listTenantsCommand)
			rm := a.operate("rm <tenant> [--yes]", "Deletes everything of a tenant, and shows how much it was", cobra.ExactArgs(1), removeTenantCommand)
			rm.Flags().Bool("yes", false, "Don't ask for confirmation")
			group(c, list, rm)
		},
	}
}

func listTenantsCommand(o *operator, _ flags) error {
	var list adminapi.List[adminapi.Tenant]
	if shown, err := o.call(http.MethodGet, adminapi.TenantsPath, nil, &list); err != nil || shown {
		return err
	}
	w := tabwriter.NewWriter(o.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TENANT\tKEYS\tTOKENS THIS MONTH")
	for _, t := range list.Data {
		fmt.Fprintf(w, "%s\t%d\t%s\n", t.Tenant, t.Keys, humanize.Comma(t.Tokens))
	}
	return w.Flush()
}

func removeTenantCommand(o *operator, fl flags) error {
	tenant := fl.Arg(0)
	if !fl.Bool("yes") {
		if err := o.confirm(tenant); err != nil {
			return err
		}
	}
	var got adminapi.Receipt
	if shown, err := o.call(http.MethodDelete, adminapi.TenantsPath+"/"+url.PathEscape(tenant), nil, &got); err != nil || shown {
		return err
	}
	w := tabwriter.NewWriter(o.out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "deleted\t%s\n", got.Tenant)
	for _, row := range []struct {
		name string
		n    int64
	}{
		{"keys", int64(got.Keys)}, {"sessions", int64(got.Sessions)}, {"messages", got.Messages},
		{"files", int64(got.Files)}, {"bytes of files", got.Bytes}, {"chunks", int64(got.Chunks)}, {"vectors", int64(got.Vectors)},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row.name, humanize.Comma(row.n))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if got.ConfiguredKeys > 0 {
		fmt.Fprintf(o.err, "\n%d of its keys are in the configuration and still valid: remove them there, and reload.\n", got.ConfiguredKeys)
	}
	return nil
}

// confirm has a person type the tenant's name.
func (o *operator) confirm(tenant string) error {
	if !term.IsTerminal(int(o.in.Fd())) {
		return errors.New("this deletes everything of the tenant; without a terminal, confirm with --yes")
	}
	fmt.Fprintf(o.err, "This permanently deletes everything of tenant %s. Type its name to continue: ", tenant)
	line, err := bufio.NewReader(o.in).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != tenant {
		return errors.New("nothing was deleted")
	}
	return nil
}
