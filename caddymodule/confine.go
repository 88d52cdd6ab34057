package caddymodule

import (
	"sync"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/knowledge/sandbox"
)

var confineOnce sync.Once

// confine hides this process from others of its user, and tells once what keeps
// the processes that read files from reaching anything.
func confine(logger *zap.Logger) {
	on, off := sandbox.Barriers()
	if err := sandbox.Hide(); err != nil {
		logger.Warn("this process can be read by others of its user", zap.Error(err))
	}
	missing := make([]string, 0, len(off))
	for name, err := range off {
		missing = append(missing, name+": "+err.Error())
	}
	logger.Info("files are read in processes of their own", zap.Strings("confined_by", on), zap.Strings("not_available", missing))
}
