package com.acme;

import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A report over rows of type {@code <T>}.
 *
 * @param <T> the row's type
 */
public final class Report<T extends Comparable<? super T>> {
    private final String title;
    private final String subtitle;
    private final LocalDate from;
    private final LocalDate to;
    private final List<T> rows;
    private final Map<String, Function<T, ?>> columns;
    private final boolean landscape;
    private final char separator;
    private final int limit;

    public Report(String title, String subtitle, LocalDate from, LocalDate to, List<T> rows,
                  Map<String, Function<T, ?>> columns, boolean landscape, char separator, int limit) {
        this.title = Objects.requireNonNull(title);
        this.subtitle = subtitle;
        this.from = from;
        this.to = to;
        this.rows = List.copyOf(rows);
        this.columns = Map.copyOf(columns);
        this.landscape = landscape;
        this.separator = separator;
        this.limit = limit;
    }

    public String toCsv() {
        String head = String.join(String.valueOf(separator), columns.keySet());
        return rows.stream()
                .sorted()
                .limit(limit)
                .map(row -> columns.values().stream()
                        .map(f -> quote(String.valueOf(f.apply(row))))
                        .collect(Collectors.joining(String.valueOf(separator))))
                .collect(Collectors.joining("\r\n", head + "\r\n", "\r\n"));
    }

    private String quote(String cell) {
        return cell.indexOf(separator) < 0 && cell.indexOf('"') < 0
                ? cell
                : '"' + cell.replace("\"", "\"\"") + '"';
    }

    @Override
    public String toString() {
        return """
                Report "%s" (%s)
                  %s \u2013 %s, %d rows%s
                """.formatted(title, subtitle, from, to, rows.size(), landscape ? ", landscape" : "");
    }
}
