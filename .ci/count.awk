# Counts the tests in the output of go test -json, for a row of make test's table. Variables: module, result, seconds.
/"Test":/ && /"Action":"(pass|fail|skip)"/ {
	split($0, parts, "\"Action\":\"")
	count[substr(parts[2], 1, 4)]++
}
END { print module, result, count["pass"] + 0, count["fail"] + 0, count["skip"] + 0, seconds }
