package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// notAllowedError says that the list of allowed commands lacks one.
type notAllowedError struct{ path string }

func (e notAllowedError) Error() string {
	at := ""
	if e.path != "" {
		at = " (" + e.path + ")"
	}
	return "the command" + at + " is not one of those that may run: add it to ExecPlugin.Allowed if you trust it"
}

// allowedPath is the path of the program to run.
func allowedPath(plugin *ExecPlugin) (string, error) {
	path, err := exec.LookPath(plugin.Command)
	if err != nil {
		path = ""
	}
	if plugin.Allowed != nil && !allows(plugin.Allowed, plugin.Command, path) {
		return "", notAllowedError{path}
	}
	if err != nil {
		return "", notFound(plugin, err)
	}
	return path, nil
}

// allows compares names with names and the paths they lead to with each other, as client-go does. A relative path is
// never taken for a name.
func allows(allowed []string, command, path string) bool {
	for _, entry := range allowed {
		if entry == "" {
			continue
		}
		if entry == command {
			return true
		}
		leads, err := exec.LookPath(entry)
		if err == nil && path != "" && filepath.Clean(leads) == filepath.Clean(path) {
			return true
		}
	}
	return false
}

// notFound tells how to get a program that cannot be started, if that is the reason.
func notFound(plugin *ExecPlugin, err error) error {
	hint := strings.TrimSpace(plugin.InstallHint)
	switch {
	case errors.Is(err, exec.ErrDot):
		return fmt.Errorf("%w: write the command as a path", err)
	case !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the program cannot be started: %w", err)
	case hint == "":
		return fmt.Errorf("the program is not there: install it, or put it in PATH: %w", err)
	default:
		return fmt.Errorf("the program is not there: %w; how to install it:\n%s", err, hint)
	}
}
