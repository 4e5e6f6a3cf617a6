module gostacks

go 1.21
