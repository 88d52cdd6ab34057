package caddymodule

import (
	"os"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/backstory-proxy/backstory/knowledge/sandbox"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  sandbox.Argument,
		Short: "Reads a file for the proxy, which starts it",
		CobraFunc: func(c *cobra.Command) {
			c.Hidden = true
			c.Args = cobra.NoArgs
			c.RunE = func(*cobra.Command, []string) error { return sandbox.Child(os.Stdin, os.Stdout, os.Stderr) }
		},
	})
}

// readers read the files of all uploads: how many are read at once depends on
// the machine, not on the number of configurations.
var readers = sandbox.New()
