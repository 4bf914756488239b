package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// A kubeconfig of apitest has a single cluster, user and context, all named entryName. adminToken is the token of each server.
const (
	entryName  = "apitest"
	adminToken = "apitest-admin"
)

// replaceable resolves symbolic links in path and returns the file to write. It fails for a non-empty file not written by
// apitest.
func replaceable(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		if _, linkErr := os.Lstat(path); errors.Is(linkErr, fs.ErrNotExist) {
			return path, nil
		}
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("write kubeconfig %s: not a regular file", path)
	}
	data, err := os.ReadFile(target)
	if err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	if len(bytes.TrimSpace(data)) > 0 && !isOwn(data) {
		return "", fmt.Errorf("write kubeconfig %s: the file exists and is not from apitest (choose another path or delete the file)", path)
	}
	return target, nil
}

// isOwn reports whether apitest wrote a kubeconfig. Settings of its context may have changed.
func isOwn(data []byte) bool {
	file, err := kubeconfig.Parse(data, "")
	if err != nil || len(file.Clusters) != 1 || len(file.Users) != 1 || len(file.Contexts) != 1 {
		return false
	}
	_, hasCluster := file.Clusters[entryName]
	_, hasContext := file.Contexts[entryName]
	return hasCluster && hasContext && file.Users[entryName].Token.Reveal() == adminToken
}

// writeKubeconfig replaces a file atomically, with mode 0600 regardless of an existing file's mode.
func writeKubeconfig(path string, data []byte) error {
	target, err := replaceable(path)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(target), ".apitest-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), target)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
