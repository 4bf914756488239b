package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured/manifest"
)

// ValidateRaw validates uri and rejects flags in conflict with --raw. files may name a single file or standard input.
func ValidateRaw(uri string, files *flags.Files, output string) error {
	switch {
	case len(files.Paths) > 1:
		return errors.New("--raw can only use a single local file or stdin")
	case len(files.Paths) == 1 && strings.HasPrefix(files.Paths[0], "http"):
		return errors.New("--raw cannot read from a url")
	case files.Recursive:
		return errors.New("--raw and --recursive are mutually exclusive")
	case output != "":
		return errors.New("--raw and --output are mutually exclusive")
	}
	if _, err := url.ParseRequestURI(uri); err != nil {
		return fmt.Errorf("--raw must be a valid URL path: %w", err)
	}
	return nil
}

// Raw sends a request and writes the response body. The request body is the content of file, standard input for "-", or empty
// for "".
func (s *State) Raw(ctx context.Context, method, uri, file string) error {
	request := &transport.Request{Method: method, Path: uri}
	var err error
	switch file {
	case "":
	case manifest.Stdin:
		request.Body, err = io.ReadAll(s.In)
	default:
		request.Body, err = os.ReadFile(file)
	}
	if err != nil {
		return err
	}
	if request.Body != nil {
		request.Header = http.Header{"Content-Type": {"application/json"}}
	}
	conn, err := s.Connection.Conn(ctx)
	if err != nil {
		return err
	}
	response, err := conn.Do(ctx, request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(s.Out, response.Body)
	return err
}
