package com.acme;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReportTest {
    private static Report.Builder<String> cities() {
        return Report.<String>builder()
                .title("Städte")
                .subtitle("alle")
                .period(LocalDate.of(2024, 1, 1), LocalDate.of(2024, 12, 31))
                .rows(List.of("Köln;Bonn", "Aachen"))
                .columns(Map.of("name", s -> s))
                .separator(';')
                .limit(10);
    }

    @Test
    void csvIsSortedAndQuoted() {
        var report = cities().build();
        assertEquals("name\r\nAachen\r\n\"Köln;Bonn\"\r\n", report.toCsv());
    }

    @Test
    void buildRejectsInvalidValues() {
        assertThrows(NullPointerException.class, () -> cities().title(null).build());
        assertThrows(IllegalArgumentException.class, () -> cities().limit(-1).build());
        assertThrows(IllegalArgumentException.class, () -> cities().columns(Map.of()).build());
        assertThrows(IllegalArgumentException.class,
                () -> cities().period(LocalDate.of(2025, 1, 1), LocalDate.of(2024, 1, 1)).build());
    }
}
