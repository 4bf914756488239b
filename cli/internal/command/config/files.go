package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

// setCurrentContext changes the first file with a current context. Without such a file it changes the default file.
func setCurrentContext(ctx context.Context, s *command.State, name string) error {
	path, err := defaultFile(s)
	if err != nil {
		return err
	}
	for _, candidate := range configFiles(s) {
		if file, err := kubeconfig.Read(candidate); err == nil && file.CurrentContext != "" {
			path = candidate
			break
		}
	}
	return edit.File(ctx, path, func(document *edit.Document) error {
		document.SetCurrentContext(name)
		return nil
	})
}

// configFiles returns the file of --kubeconfig, or the files of KUBECONFIG.
func configFiles(s *command.State) []string {
	if s.Connection.Kubeconfig != "" {
		return []string{s.Connection.Kubeconfig}
	}
	return slices.DeleteFunc(filepath.SplitList(os.Getenv("KUBECONFIG")), func(path string) bool { return path == "" })
}

// defaultFile returns the file for new entries: the first existing file of configFiles, or the last without an existing file.
// Without configFiles it is ~/.kube/config.
func defaultFile(s *command.State) (string, error) {
	files := configFiles(s)
	for _, path := range files {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	if len(files) > 0 {
		return files[len(files)-1], nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the kubeconfig: %w", err)
	}
	return filepath.Join(home, ".kube", "config"), nil
}

// entryFile returns origin, the file of an existing entry, or the default file for a new entry.
func entryFile(s *command.State, origin string) (string, error) {
	if origin != "" {
		return origin, nil
	}
	return defaultFile(s)
}

// inFolder returns a file name for an entry of the kubeconfig at path: relative in or below the kubeconfig's folder, and absolute
// elsewhere, as kubectl writes it.
func inFolder(path, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(folder, absolute)
	if err != nil || relative == ".." || strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
		return absolute, nil //nolint:nilerr // there is no relative name, as on another drive
	}
	return relative, nil
}
