package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// operator speaks to the admin API of the instance that runs, as Caddy's own
// commands do: it alone has the store open, and knows which keys it has cached.
type operator struct {
	admin                    Admin
	address, config, adapter string
	json                     bool
	in                       *os.File
	out, err                 io.Writer
}

// operate makes a subcommand. What do returns is the command's error.
func (a Admin) operate(use, short string, args cobra.PositionalArgs, do func(o *operator, fl flags) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: args}
	c.Flags().String("address", "", "The address of the admin API (default localhost:2019, or as the configuration says)")
	c.Flags().String("config", "", "The configuration with the address of the admin API")
	c.Flags().String("adapter", "", "The adapter of that configuration")
	c.Flags().Bool("json", false, "Write the admin API's JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		fl := flags{c.Flags()}
		o := &operator{
			admin: a, address: fl.String("address"), config: fl.String("config"), adapter: fl.String("adapter"),
			json: fl.Bool("json"), in: os.Stdin, out: os.Stdout, err: os.Stderr,
		}
		return do(o, fl)
	}
	return c
}

// group adds subcommands to a command that does nothing without one. Cobra alone
// would answer any other word with the help, and call that a success.
func group(c *cobra.Command, subs ...*cobra.Command) {
	c.AddCommand(subs...)
	c.Args = cobra.NoArgs
	c.DisableFlagsInUseLine = true
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

// call sends a request to the admin API, reads the answer into to, and with
// --json writes it out as it came; shown says that this was all there is to
// show.
func (o *operator) call(method, path string, in, to any) (shown bool, err error) {
	address, err := o.admin.Address(o.address, o.config, o.adapter)
	if err != nil {
		return false, err
	}
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return false, err
		}
		body = strings.NewReader(string(b))
	}
	reply, err := o.admin.Request(address, method, path, http.Header{}, body)
	if err != nil {
		return false, explainAdmin(address, err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return false, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	if !json.Valid(text) {
		return false, fmt.Errorf("what answers at %s isn't Caddy's admin API", address)
	}
	if o.json {
		_, err := o.out.Write(text)
		return true, err
	}
	return false, json.Unmarshal(text, to)
}

// explainAdmin says what an error of the admin API means, and what to do about it.
func explainAdmin(address string, err error) error {
	text := err.Error()
	var told struct {
		Error string `json:"error"`
	}
	if at := strings.IndexByte(text, '{'); at >= 0 && json.Unmarshal([]byte(text[at:]), &told) == nil && told.Error != "" {
		return errors.New(told.Error)
	}
	if strings.Contains(text, syscall.ECONNREFUSED.Error()) || strings.Contains(text, syscall.ENOENT.Error()) {
		return fmt.Errorf("no instance answers at %s; start one, or name its admin API with --address or --config", address)
	}
	if strings.Contains(text, "HTTP 404") {
		return fmt.Errorf("the instance at %s doesn't run Backstory", address)
	}
	return err
}
