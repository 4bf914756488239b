package command

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/transport"
)

// requestFlags are the flags -v and --warnings-as-errors.
type requestFlags struct {
	verbosity        int
	warningsAsErrors bool
	warnings         atomic.Int64
}

// logVerbosity is the lowest -v with a log line per request, as in kubectl.
const logVerbosity = 6

func (r *requestFlags) addFlags(fs *pflag.FlagSet) {
	fs.IntVarP(&r.verbosity, "v", "v", 0, "number for the log level verbosity: from 6 on, each request is logged, without its query")
	fs.BoolVar(&r.warningsAsErrors, "warnings-as-errors", false, "Treat warnings received from the server as errors and exit with a non-zero exit code")
}

func (r *requestFlags) log(s *State, attempt *transport.Attempt) {
	if r.verbosity < logVerbosity {
		return
	}
	result := "no response"
	switch {
	case attempt.StatusCode != 0:
		result = fmt.Sprintf("%d %s", attempt.StatusCode, http.StatusText(attempt.StatusCode))
	case attempt.Err != nil:
		result = attempt.Err.Error()
	}
	s.Errorf("%s %s %s in %v", attempt.Method, attempt.URL, result, attempt.Duration.Round(time.Millisecond))
}

func (r *requestFlags) warningsError() error {
	switch count := r.warnings.Load(); {
	case !r.warningsAsErrors || count == 0:
		return nil
	case count == 1:
		return fmt.Errorf("1 warning received")
	default:
		return fmt.Errorf("%d warnings received", count)
	}
}
