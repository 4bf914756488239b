module github.com/anykind/anykind/sandbox

go 1.26.0
