// Package cli holds the commands that Backstory adds to the program: keys,
// tenants and sessions speak to the admin API of the instance that runs, files to
// the API that apps use, and migrate to the stores themselves.
package cli

import (
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command is a command of the program.
type Command struct {
	Name, Usage, Short, Long string
	// Setup gives the command its flags and subcommands. What they return is
	// an error for a person to read, or an *ExitError.
	Setup func(*cobra.Command)
}

// Admin leads to the admin API of the instance that runs.
type Admin struct {
	// Address finds the API's address by what was given on the command line: the
	// address itself, or a configuration and its adapter.
	Address func(address, config, adapter string) (string, error)
	// Request sends a request. An answer that isn't a success is an error.
	Request func(address, method, path string, header http.Header, body io.Reader) (*http.Response, error)
}

// Commands returns all commands.
func Commands(a Admin) []Command {
	return []Command{a.keysCommands(), a.tenantsCommands(), a.sessionsCommands(), filesCommands(), migrateCommands()}
}

// ExitError has the program end with a status of its own.
type ExitError struct {
	Status int
	Err    error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// flags are the flags and arguments of a command. Each flag that is asked for is
// one that the command has.
type flags struct{ *pflag.FlagSet }

func (f flags) String(name string) string { s, _ := f.GetString(name); return s }
func (f flags) Int(name string) int       { n, _ := f.GetInt(name); return n }
func (f flags) Bool(name string) bool     { b, _ := f.GetBool(name); return b }
