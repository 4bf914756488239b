package stream

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSession_Handle handles messages split by length bytes, and compares the output with a simple reading of the protocol.
func FuzzSession_Handle(f *testing.F) {
	f.Add([]byte("\x05\x01text\x05\x02more\x00\x01\x01\x02\xff\x01"))
	f.Add([]byte("\x17\x03{\"status\":\"Success\"}  \x04\x01end"))
	f.Add([]byte("\x06\x03{\"sta\x10\x03tus\":\"Failure\"}"))
	f.Add(append([]byte("\x7f\x03"), `{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"42"}]}}                   `...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var stdout, stderr, wantOut, wantErr, status bytes.Buffer
		s := session{opts: ExecOptions{Stdout: &stdout, Stderr: &stderr}}
		for len(data) > 0 {
			size := min(int(data[0]), len(data)-1)
			message := data[1 : 1+size]
			data = data[1+size:]
			require.NoError(t, s.handle(bytes.NewReader(message)))
			switch {
			case size == 0:
			case message[0] == channelStdout:
				wantOut.Write(message[1:])
			case message[0] == channelStderr:
				wantErr.Write(message[1:])
			case message[0] == channelError:
				_, err := status.ReadFrom(s.message)
				require.NoError(t, err)
			}
		}
		require.Equal(t, wantOut.Bytes(), stdout.Bytes())
		require.Equal(t, wantErr.Bytes(), stderr.Bytes())
		decoded, err := decodeStatus(&status)
		if err != nil {
			return
		}
		err = exitError(decoded)
		var exited *ExitError
		if errors.As(err, &exited) {
			require.NotZero(t, exited.Code)
		}
		require.Equal(t, decoded.Status == "Success", err == nil)
	})
}
