// Package parity compares the results of anykind with client-go's and with those of further peers: conversion to structs, JSON
// paths, kubectl's names, requests, kubeconfigs and readiness. Costs are compared by module bench. It is a separate module, so
// that programs with anykind never depend on client-go.
package parity
