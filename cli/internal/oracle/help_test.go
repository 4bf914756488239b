package oracle

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// helpDifferences lists the commands and flags of kubectl that anyctl lacks, with reasons. A line is a command or a command and a flag,
// a tab, and the reason. A command stands for its flags and subcommands. "* --flag" is a flag of any command. A reason that begins with
// untilOlder is not required of the newest kubectl.
const (
	helpDifferences = "testdata/help_differences.txt"
	untilOlder      = "until kubectl 1.36: "
)

// TestHelp_CommandsAndFlags compares the help of all commands. A new command or flag of kubectl fails, and so does an entry of
// helpDifferences that anyctl has meanwhile.
func TestHelp_CommandsAndFlags(t *testing.T) {
	t.Parallel()
	accepted := readHelpDifferences(t)
	missing := map[string]bool{}
	compareHelp(t, kubectlPath(t), buildAnyctl(t), nil, func(name string) {
		for _, entry := range helpEntries(name) {
			if accepted[entry] != "" {
				missing[entry] = true
				return
			}
		}
		t.Errorf("anyctl lacks %q of kubectl, and %s does not explain it", name, helpDifferences)
	})
	for entry, reason := range accepted {
		assert.True(t, missing[entry] || strings.HasPrefix(reason, untilOlder), "%s: anyctl has %q, or kubectl does not: remove the line", helpDifferences, entry)
	}
}

// helpEntries returns the entries that accept a missing command or flag.
func helpEntries(name string) []string {
	entries := []string{name}
	if i := strings.LastIndex(name, " -"); i > 0 {
		entries = append(entries, "*"+name[i:])
	}
	return entries
}

func readHelpDifferences(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open(helpDifferences)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	accepted := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		entry, reason, found := strings.Cut(lines.Text(), "\t")
		require.True(t, found && reason != "", "%s: %q: write a command or flag, a tab and a reason", helpDifferences, lines.Text())
		require.Empty(t, accepted[entry], "%s: %q is listed twice", helpDifferences, entry)
		accepted[entry] = reason
	}
	require.NoError(t, lines.Err())
	return accepted
}

// compareHelp calls missing for each command and flag that anyctl lacks. It does not descend into missing commands.
func compareHelp(t *testing.T, kubectl, anyctl string, path []string, missing func(string)) {
	t.Helper()
	wantCommands, wantFlags := helpOf(t, kubectl, path)
	haveCommands, haveFlags := helpOf(t, anyctl, path)
	for _, flag := range wantFlags {
		if !slices.Contains(haveFlags, flag) {
			missing(strings.TrimSpace(strings.Join(path, " ") + " " + flag))
		}
	}
	for _, command := range wantCommands {
		sub := append(slices.Clone(path), command)
		if !slices.Contains(haveCommands, command) {
			missing(strings.Join(sub, " "))
			continue
		}
		compareHelp(t, kubectl, anyctl, sub, missing)
	}
}

var (
	helpSection = regexp.MustCompile(`^\S.*:$`)
	helpCommand = regexp.MustCompile(`^  ([a-z][a-z0-9-]*)( |$)`)
	helpFlag    = regexp.MustCompile(`^ +(?:-(\w), )?(--[a-z][a-z0-9-]*)`)
)

// helpOf returns the subcommands and flags in the help of a command. kubectl prints the flags of all commands by options.
func helpOf(t *testing.T, program string, path []string) (commands, flags []string) {
	t.Helper()
	args := append(slices.Clone(path), "--help")
	if len(path) == 0 && strings.HasSuffix(program, "kubectl") {
		options, _ := exec.Command(program, "options").CombinedOutput()
		_, flags = parseHelp("Options:\n" + string(options))
	}
	output, err := exec.Command(program, args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", program, args, output)
	commands, more := parseHelp(string(output))
	return commands, append(flags, more...)
}

func parseHelp(text string) (commands, flags []string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if helpSection.MatchString(line) {
			section = line
			continue
		}
		if match := helpCommand.FindStringSubmatch(line); match != nil && strings.Contains(section, "Commands") {
			commands = append(commands, match[1])
		}
		isFlags := section == "Options:" || section == "Flags:" || section == "Global Flags:"
		if match := helpFlag.FindStringSubmatch(line); match != nil && isFlags {
			flags = append(flags, match[2])
			if match[1] != "" {
				flags = append(flags, "-"+match[1])
			}
		}
	}
	return commands, flags
}
