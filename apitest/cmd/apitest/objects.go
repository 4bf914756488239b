package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/anykind/anykind/unstructured"
)

// readObjects reads the objects of files and of the YAML and JSON files of folders, in the order of their names.
func readObjects(paths []string) ([]*unstructured.Object, error) {
	var all []*unstructured.Object
	for _, path := range paths {
		files, err := manifests(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			objects, err := readFile(file)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", file, err)
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

// manifests returns path itself, or all manifests below it if it is a folder.
func manifests(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			files = append(files, name)
		}
		return err
	})
	return files, err
}

func readFile(path string) ([]*unstructured.Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := unstructured.NewYAMLDecoder(file)
	var objects []*unstructured.Object
	for {
		object, err := decoder.Next()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}
