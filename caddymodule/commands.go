package caddymodule

import (
	"errors"
	"os"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/backstory-proxy/backstory/internal/cli"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
)

func init() {
	for _, command := range cli.Commands(cli.Admin{Address: adminAddress, Request: caddycmd.AdminAPIRequest}) {
		caddycmd.RegisterCommand(caddycmd.Command{
			Name: command.Name, Usage: command.Usage, Short: command.Short, Long: command.Long,
			CobraFunc: func(c *cobra.Command) {
				command.Setup(c)
				wrap(c)
			},
		})
	}
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

// wrap has Caddy tell of the errors of a command and its subcommands, and end
// with their status.
func wrap(c *cobra.Command) {
	for _, sub := range c.Commands() {
		wrap(sub)
	}
	run := c.RunE
	if run == nil || c.HasSubCommands() {
		return
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) {
			err := run(c, args)
			var exit *cli.ExitError
			switch {
			case errors.As(err, &exit):
				return exit.Status, exit.Err
			case err != nil:
				return 1, err
			}
			return 0, nil
		})(c, args)
	}
}

func adminAddress(address, config, adapter string) (string, error) {
	return caddycmd.DetermineAdminAPIAddress(address, nil, config, adapter)
}
