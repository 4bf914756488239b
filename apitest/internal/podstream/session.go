package podstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/streams"
)

// maxResizes is the number of buffered terminal sizes. Older sizes are dropped.
const maxResizes = 8

// channels are the streams of a session over either protocol.
type channels struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	resizes        chan streams.TerminalSize
	// end sends the Status of the session and closes the connection.
	end func(status []byte)
	// gone is closed when the client disconnects.
	gone <-chan struct{}
}

// session runs an exec or attach until the test's function returns.
func (h *Handler) session(w http.ResponseWriter, req *http.Request, subresource string, pod streams.Pod) error {
	query := req.URL.Query()
	flag := func(key string) bool {
		value, err := strconv.ParseBool(query.Get(key))
		return value && err == nil
	}
	run := h.Handlers.Exec
	option := "Exec"
	if subresource == "attach" {
		run = h.Handlers.Attach
		option = "Attach"
	}
	requested := requestedStreams{stdin: flag("stdin"), stdout: flag("stdout"), stderr: flag("stderr") && !flag("tty"), tty: flag("tty")}
	if !requested.stdin && !requested.stdout && !flag("stderr") {
		return apierrors.NewBadRequest("you must specify at least 1 of stdin, stdout, stderr")
	}
	if run == nil {
		return notSet(option)
	}
	c, err := upgrade(w, req, requested)
	if err != nil || c == nil {
		return err
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	go func() {
		select {
		case <-c.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	session := &streams.Session{Pod: pod, Stdin: c.stdin, Stdout: c.stdout, Stderr: c.stderr, TTY: requested.tty, Resizes: c.resizes}
	if subresource == "exec" {
		session.Command = query["command"]
	}
	err = run(ctx, session)
	c.end(sessionStatus(err))
	return nil
}

// requestedStreams are the streams requested by the client.
type requestedStreams struct{ stdin, stdout, stderr, tty bool }

// upgrade opens the streams over the requested protocol.
func upgrade(w http.ResponseWriter, req *http.Request, requested requestedStreams) (*channels, error) {
	switch protocol := strings.ToLower(req.Header.Get("Upgrade")); {
	case protocol == "websocket":
		return upgradeWebSocket(w, req, requested), nil
	case strings.HasPrefix(protocol, "spdy"):
		return upgradeSPDY(w, req, requested)
	}
	return nil, errNoUpgrade()
}

func errNoUpgrade() error {
	err := apierrors.NewBadRequest("Upgrade request required")
	return err
}

// sessionStatus converts the error of a session's handler to a Status. An ExitError becomes an exit status.
func sessionStatus(err error) []byte {
	status := metav1.Status{Status: metav1.StatusSuccess}
	var exit *streams.ExitError
	switch {
	case errors.As(err, &exit):
		status = metav1.Status{
			Status: metav1.StatusFailure, Reason: "NonZeroExitCode",
			Message: fmt.Sprintf("command terminated with non-zero exit code: exit status %d", exit.Code),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(exit.Code)}}},
		}
	case err != nil:
		status = statusOf(err)
	}
	text, _ := json.Marshal(status)
	return text
}

// readResizes decodes sizes until the reader ends. It keeps the latest maxResizes sizes.
func readResizes(reader io.Reader, resizes chan streams.TerminalSize) {
	decoder := json.NewDecoder(reader)
	for {
		var size streams.TerminalSize
		if decoder.Decode(&size) != nil {
			return
		}
		for sent := false; !sent; {
			select {
			case resizes <- size:
				sent = true
			default:
				select {
				case <-resizes:
				default:
				}
			}
		}
	}
}

// orDiscard returns w, or io.Discard if the stream is not requested.
func orDiscard(w io.Writer, requested bool) io.Writer {
	if !requested {
		return io.Discard
	}
	return w
}
