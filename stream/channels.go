package stream

import (
	"errors"
	"fmt"
	"io"
)

// The subprotocols of exec and attach. Each binary message begins with the number of its channel. What v5 adds is the
// message that closes a channel: without it a command never sees the end of its input.
const (
	protocolV5 = "v5.channel.k8s.io"
	protocolV4 = "v4.channel.k8s.io"
)

const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
	channelError  = 3 // carries one Status, which says how the command ended
	channelResize = 4
	channelClose  = 255 // the number of the channel to close follows
)

// output takes apart what the server sends.
type output struct {
	stdout, stderr io.Writer // nil where the caller wants none
	status         verdict
	buffer         []byte
}

// take reads one message. Its writers may make it wait: then nothing is read meanwhile, and the server waits, too.
func (o *output) take(message io.Reader) error {
	if o.buffer == nil {
		o.buffer = make([]byte, messageSize)
	}
	if _, err := io.ReadFull(message, o.buffer[:1]); err == io.EOF {
		return nil // servers greet with an empty message
	} else if err != nil {
		return err
	}
	switch o.buffer[0] {
	case channelStdout:
		return o.copy("stdout", o.stdout, message)
	case channelStderr:
		return o.copy("stderr", o.stderr, message)
	case channelError:
		err := o.copy("status", &o.status, message)
		var failed *writeError
		if errors.As(err, &failed) {
			return failed.err // of what the server wrote, not of a writer
		}
		return err
	default: // of a later protocol, or nothing that we asked for
		return o.copy("", nil, message)
	}
}

// writeError is a failure of the caller's own writer.
type writeError struct {
	stream string
	err    error
}

func (e *writeError) Error() string { return fmt.Sprintf("write %s: %v", e.stream, e.err) }
func (e *writeError) Unwrap() error { return e.err }

// copy does as io.Copy, but never lets the writer read: that of a file would allocate a buffer for each message.
func (o *output) copy(stream string, to io.Writer, message io.Reader) error {
	for {
		n, err := message.Read(o.buffer)
		if n > 0 && to != nil {
			written, failed := to.Write(o.buffer[:n])
			if failed == nil && written < n {
				failed = io.ErrShortWrite
			}
			if failed != nil {
				return &writeError{stream, failed}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
