package controller_test

import (
	"log"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain silences slog's default logger: most tests let something fail.
func TestMain(m *testing.M) {
	flags := log.Flags()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(os.Stderr) // which SetDefault has taken away
	log.SetFlags(flags)
	goleak.VerifyTestMain(m)
}
