// Package editor runs the user's editor.
package editor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
)

// Editor runs the user's editor on a temporary file.
type Editor struct {
	command.Streams
	// text is the command line of the editor.
	text string
}

// New returns the editor of KUBE_EDITOR or EDITOR. The default is vi, or notepad on Windows.
func New(streams command.Streams) *Editor {
	standard := "vi"
	if runtime.GOOS == "windows" {
		standard = "notepad"
	}
	return &Editor{Streams: streams, text: cmp.Or(strings.TrimSpace(os.Getenv("KUBE_EDITOR")), strings.TrimSpace(os.Getenv("EDITOR")), standard)}
}

// Edit writes content to a new file, runs the editor, and returns the path and the edited content. The caller removes the file,
// even after an error. Canceling ctx does not stop the editor, because it holds the user's unsaved text.
func (e *Editor) Edit(ctx context.Context, suffix, content string) (path, edited string, err error) {
	file, err := os.CreateTemp("", "anyctl-edit-*"+suffix)
	if err != nil {
		return "", "", fmt.Errorf("edit: create a temporary file: %w", err)
	}
	path = file.Name()
	_, err = io.WriteString(file, content)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return path, "", fmt.Errorf("edit: write %s: %w", path, err)
	}
	if err := e.run(context.WithoutCancel(ctx), path); err != nil {
		return path, "", err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return path, "", fmt.Errorf("edit: %w", err)
	}
	return path, string(data), nil
}

func (e *Editor) run(ctx context.Context, path string) error {
	cmd := e.command(ctx, path)
	cmd.Stdin = e.In
	cmd.Stdout = printable.Unwrap(e.Out) // the editor draws on the terminal
	cmd.Stderr = printable.Unwrap(e.Err)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("there was a problem with the editor %q: %w", e.text, err)
	}
	return nil
}

// command returns the editor's command. The shell runs a command line with quotes, backslashes or '$'.
func (e *Editor) command(ctx context.Context, path string) *exec.Cmd {
	if !strings.ContainsAny(e.text, "\"'\\$") || runtime.GOOS == "windows" && !strings.ContainsAny(e.text, "\"'") {
		args := append(strings.Fields(e.text), path)
		return exec.CommandContext(ctx, args[0], args[1:]...)
	}
	if runtime.GOOS == "windows" {
		return exec.CommandContext(ctx, "cmd", "/C", e.text+" "+path)
	}
	return exec.CommandContext(ctx, cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", e.text+` "$1"`, "editor", path)
}

// header is the comment at the top of the file.
const header = `# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
`

// Header returns the comments above the content. reasons are the errors shown when the editor reopens.
func Header(reasons string) string {
	if reasons == "" {
		return header
	}
	lines := strings.Split(strings.TrimRight(reasons, "\n"), "\n")
	return header + "# " + strings.Join(lines, "\n# ") + "\n#\n"
}

// WithoutHeader returns text without its leading comments.
func WithoutHeader(text string) string {
	for strings.HasPrefix(text, "#") {
		_, rest, found := strings.Cut(text, "\n")
		if !found {
			return ""
		}
		text = rest
	}
	return text
}

// KeepFile reports err and the path of the editor's file.
func KeepFile(s *command.State, path string, err error) error {
	if path == "" {
		return err
	}
	code := exit.Report(s.Err, err)
	s.Errorf("A copy of your changes has been stored to %q", path)
	return &exit.Error{Code: code}
}
