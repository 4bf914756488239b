package plugin

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// prefix begins the file name of a plugin. It is kubectl's: plugins of kubectl are plugins of anyctl.
const prefix = "kubectl-"

// completionPrefix begins the file name of a program that completes the arguments of a plugin.
const completionPrefix = "kubectl_complete-"

// Plugin is an executable file and its arguments.
type Plugin struct {
	Path string
	Args []string
}

// Find returns the plugin for a command line, or nil. The longest name wins: the first words of args, up to the first flag, are joined
// with dashes. A name has at least minWords words. A dash within a word is an underscore in the file name.
func Find(args []string, minWords int) *Plugin {
	words := args
	if i := slices.IndexFunc(args, isFlag); i >= 0 {
		words = args[:i]
	}
	for n := len(words); n >= minWords && n > 0; n-- {
		if path, ok := lookup(prefix + fileName(words[:n])); ok {
			return &Plugin{Path: path, Args: args[n:]}
		}
	}
	return nil
}

// AfterFlags returns the name of a plugin behind flags, or "".
func AfterFlags(args []string) string {
	for _, arg := range args {
		if arg == "--" {
			return ""
		}
		if !isFlag(arg) && Find([]string{arg}, 1) != nil {
			return arg
		}
	}
	return ""
}

func isFlag(arg string) bool { return strings.HasPrefix(arg, "-") }

func fileName(words []string) string {
	words = slices.Clone(words)
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "-", "_")
	}
	return strings.Join(words, "-")
}

// lookup returns the first executable file of a name in the folders. A name with a separator is no file name.
func lookup(name string) (string, bool) {
	if strings.ContainsAny(name, `/\`) {
		return "", false
	}
	for _, folder := range folders() {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, true
		}
	}
	return "", false
}

// folders returns the absolute folders of PATH, without duplicates. A relative entry, such as the current folder, could hold files of
// other users.
func folders() []string {
	var absolute []string
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(folder) && !slices.Contains(absolute, folder) {
			absolute = append(absolute, folder)
		}
	}
	return absolute
}

// isExecutable reports whether the file of an existing plugin is executable.
func isExecutable(path string, info os.FileInfo) bool {
	if runtime.GOOS == "windows" {
		return slices.Contains([]string{".bat", ".cmd", ".com", ".exe", ".ps1"}, strings.ToLower(filepath.Ext(path)))
	}
	return info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// isWorldWritable reports whether every user may replace a file in a folder, or write the file itself.
func isWorldWritable(path string, info os.FileInfo) bool {
	const others = 0o002
	if runtime.GOOS == "windows" {
		return false
	}
	folder, err := os.Stat(filepath.Dir(path))
	return info.Mode()&others != 0 || err == nil && folder.Mode()&others != 0 && folder.Mode()&os.ModeSticky == 0
}
