package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

// applicationID marks a file as ours: "Bsty".
const applicationID = 0x42737479

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the file up to the schema of this version. The number of the
// migrations a file has had is its user_version.
func migrate(c *conn) error {
	scripts, err := fs.Glob(migrations, "migrations/*.sql") // sorted by name
	if err != nil {
		return err
	}
	var version, application, tables int
	if err := c.row(`PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if err := c.row(`PRAGMA application_id`).Scan(&application); err != nil {
		return err
	}
	if err := c.row(`SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return err
	}
	switch {
	case tables > 0 && application != applicationID:
		return errors.New("it is the database of another application; name another file")
	case version > len(scripts):
		return fmt.Errorf("its schema is version %d, and this program knows %d; run a newer one", version, len(scripts))
	}
	for i := version; i < len(scripts); i++ {
		script, err := migrations.ReadFile(scripts[i])
		if err != nil {
			return err
		}
		// One transaction each: a crash leaves a whole version behind.
		if err := c.script(fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;\nCOMMIT;", script, applicationID, i+1)); err != nil {
			return fmt.Errorf("%s: %w", scripts[i], err)
		}
	}
	return nil
}
