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
	fields := []zap.Field{zap.Strings("on", on)}
	for name, err := range off {
		fields = append(fields, zap.NamedError("no_"+name, err))
	}
	logger.Info("the processes that read files are confined", fields...)
}
