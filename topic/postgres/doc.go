// Package postgres connects the topics of many machines by a PostgreSQL database.
package postgres
